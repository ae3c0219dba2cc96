"""Runs the server: address, browser, and a clean end."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from gymnast.errors import UsageError
from gymnast.studio.app import make_app

DEFAULT_PORT = 7860
TRIED_PORTS = 50
SECONDS_TO_SAY_GOODBYE = 2
Say = Callable[[str], None]


def serve(root: Path, *, host: str, port: int | None, token: str | None, browser: bool, say: Say) -> None:
    """Serve until Ctrl-C or SIGTERM. `port` None takes the first free one from 7860 on."""
    local = is_loopback(host)
    if not local and token is None:
        token = secrets.token_urlsafe(24)
    with contextlib.closing(_bound(host, port)) as listening:
        taken = listening.getsockname()[1]
        hosts = [f"{name}:{taken}" for name in ("127.0.0.1", "localhost", "[::1]")] if local else []
        address = f"http://{_in_address(host)}:{taken}/"
        if token is not None:
            address += f"?token={token}"
        app = make_app(root, hosts=hosts, token=token)
        server = _Server(app, on_start=lambda: _started(address, root, browser=browser, say=say))
        server.run(sockets=[listening])
    say("The studio is closed. Trainings that it started go on.")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):
    """Says where it listens as soon as it does."""

    def __init__(self, app: object, on_start: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="on",
                ws="websockets-sansio",
                timeout_graceful_shutdown=SECONDS_TO_SAY_GOODBYE,
            )
        )
        self._on_start = on_start

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at Ctrl-C and SIGTERM. uvicorn would raise the signal once more afterwards, which leaves no last word."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._on_start()


def _started(address: str, root: Path, *, browser: bool, say: Say) -> None:
    say(f"gymnast studio for the runs in {root.resolve()}\n  {address}\nCtrl-C ends it.")
    if browser:
        # A browser that takes its time to start must not hold the first answer up.
        threading.Thread(target=_open_page, args=(address,), daemon=True).start()


def _open_page(address: str) -> None:
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(address)


def _bound(host: str, port: int | None) -> socket.socket:
    ports = range(DEFAULT_PORT, DEFAULT_PORT + TRIED_PORTS) if port is None else [port]
    for candidate in ports:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0]
        except (socket.gaierror, UnicodeError):
            raise UsageError(
                f"'{host}' is not an address of this machine: --host 127.0.0.1 is the usual one."
            ) from None
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen(128)  # now, so that two studios cannot both believe that the port is theirs
        except OSError as error:
            listening.close()
            reason = error.strerror or str(error)
            continue
        return listening
    raise UsageError(f"The studio cannot listen on {host}, port {ports[0]}: {reason}. Name another one with --port.")


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
