"""What the studio answers: JSON, and error sentences with a fitting status."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from gymnast.errors import GymnastError, UsageError
from gymnast.service.plain import plain

MOST_BODY_BYTES = 1_000_000
Handler = Callable[[Request], Awaitable[Response]]


class Json(Response):
    """Any result of the service layer as strict JSON; NaN and infinity become null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Compact text."""
        return json.dumps(plain(content), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def answer(read: Callable[[Request], Any]) -> Handler:
    """A route that reads something: the function runs in a thread, so that a slow disk delays no other request."""

    async def handler(request: Request) -> Response:
        return await _answered(read, request)

    return handler


def change(write: Callable[[Request, dict[str, Any]], Any]) -> Handler:
    """A route that changes something: as `answer`, with the JSON object that was sent."""

    async def handler(request: Request) -> Response:
        try:
            body = await _body(request)
        except UsageError as error:
            return problem(str(error), 400)
        return await _answered(lambda asked: write(asked, body), request)

    return handler


async def _answered(read: Callable[[Request], Any], request: Request) -> Response:
    try:
        found = await run_in_threadpool(read, request)
    except UsageError as error:
        return problem(str(error), 400)
    except GymnastError as error:
        return problem(str(error), 500)
    if isinstance(found, Response):
        return found
    return Json(found)


def problem(sentence: str, status: int) -> Json:
    """A sentence that the page shows."""
    return Json({"error": sentence}, status_code=status)


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BODY_BYTES:
            raise UsageError(f"A request may hold up to {MOST_BODY_BYTES:,} bytes.")
    try:
        body = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise UsageError("The request is no JSON.") from None
    if not isinstance(body, dict):
        raise UsageError("The request is no JSON object.")
    return body


def words(request: Request, name: str) -> list[str]:
    """A parameter that may be given several times, or as one text with commas."""
    return [word for text in request.query_params.getlist(name) for word in text.split(",") if word]


def number(request: Request, name: str, default: int, *, most: int) -> int:
    """A whole number from 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise UsageError(f"{name} is a whole number from 0 to {most:,}, not '{text[:20]}'.")
    return int(text)
