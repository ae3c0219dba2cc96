"""The app: all routes behind the guard."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from gymnast import __version__
from gymnast.service.configs import list_configs
from gymnast.studio import configs, curves, files, processes, runs, traces
from gymnast.studio.answers import answer, problem
from gymnast.studio.glimpses import Glimpses
from gymnast.studio.guard import Guard
from gymnast.studio.jobs import Jobs
from gymnast.studio.live import Live
from gymnast.studio.names import Names
from gymnast.studio.playing import Playing

WARM_AFTER = 1.5
"""Seconds: the first page comes first."""


def make_app(root: Path, *, hosts: Collection[str], token: str | None = None) -> Starlette:
    """The studio for the runs in `root`. `hosts` and `token`: who may ask, see `guard`."""
    glimpses, jobs, live = Glimpses(root), Jobs(root), Live(root)
    playing, names = Playing(root), Names()

    def about(request: Request) -> Any:
        return {"version": __version__, "root": str(root.resolve())}

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Reading all presets takes a second, once. By the time they are requested, it is done.
        warming = threading.Timer(WARM_AFTER, list_configs)
        warming.daemon = True
        warming.start()
        yield
        warming.cancel()
        playing.close()
        jobs.close()

    return Starlette(
        routes=[
            Route("/api/about", answer(about)),
            *runs.routes(root, glimpses, names),
            *curves.routes(root, names),
            *configs.routes(),
            *processes.routes(root, jobs),
            *traces.routes(root, jobs),
            WebSocketRoute("/live", live.endpoint),
            WebSocketRoute("/play/session", playing.endpoint),
            *files.routes(root),
        ],
        middleware=[Middleware(Guard, hosts=hosts, token=token), Middleware(GZipMiddleware, minimum_size=2000)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
        lifespan=lifespan,
    )


async def _refused(request: Request, error: Exception) -> Response:
    """A wrong method or file, in our own form."""
    assert isinstance(error, HTTPException)
    return problem(str(error.detail), error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    return problem(f"The studio failed: {type(error).__name__}. Its terminal says more.", 500)
