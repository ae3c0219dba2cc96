"""Who may ask the studio, checked before any route and on every WebSocket handshake.

A page of another site can send requests to 127.0.0.1, and a rebound name can even read the answers. So the Host must be
ours, an Origin must be ours, and what changes something must say where it comes from. Beyond this machine a token is
needed as well.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gymnast.studio.answers import problem

COOKIE = "gymnast_studio"
TOKEN = "token"  # noqa: S105 the name of a parameter
SAFE_METHODS = ("GET", "HEAD")
POLICY_VIOLATION = 1008
HEADERS = {
    # Styles of charts are set by script through the CSSOM, which the policy does not cover; markup holds none.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], token: str | None = None) -> None:
        """`hosts` are the names (`127.0.0.1:7860`) under which the page may be asked for; empty means any, with a token."""
        self.app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with our headers."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            await refusal(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) > 1 or len(headers.getlist("origin")) > 1:
            return problem("A request has one Host and one Origin.", 400)
        if self._hosts and host not in self._hosts:
            return problem(f"This studio is not at '{host[:100]}'.", 421)
        if not _same_origin(scope, headers, host):
            return problem("Another site asked for this: open the studio's own address.", 403)
        if self._token is None or self._has_token(headers):
            return None
        return self._welcome(scope)

    def _has_token(self, headers: Headers) -> bool:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return self._is_token(bearer) or self._is_token(_cookie(headers))

    def _is_token(self, text: str) -> bool:
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    def _welcome(self, scope: Scope) -> Response:
        """The address with the token sets a cookie and leads on without it, so that it stays out of the history."""
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = dict(query).get(TOKEN, "")
        if scope["type"] != "http" or scope["method"] not in SAFE_METHODS or not self._is_token(given):
            return problem("This studio asks for its token: open the whole address that `gymnast studio` printed.", 401)
        rest = urlencode([pair for pair in query if pair[0] != TOKEN])
        path = "/" + scope["path"].lstrip("/\\")  # `//elsewhere` would lead to another host
        leading = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
        leading.set_cookie(COOKIE, given, httponly=True, samesite="strict")
        return leading


def _same_origin(scope: Scope, headers: Headers, host: str) -> bool:
    """Browsers say where a request comes from whenever it could do harm; programs other than browsers say nothing."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() in (f"http://{host}", f"https://{host}")
    if scope["type"] == "websocket":
        return True  # browsers always send an origin with a handshake
    if scope["method"] in SAFE_METHODS:
        # Following a link to the studio is fine; embedding it elsewhere is not.
        return headers.get("sec-fetch-site") != "cross-site" or headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site", "same-origin") == "same-origin"


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)  # a report has a policy of its own, which allows less
        await send(message)

    return sending
