"""Routes to files: what a run recorded, and the page itself. Nothing else of the disk is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from gymnast.service.runs import details
from gymnast.studio.answers import answer, problem
from gymnast.studio.runs import named, own_file, report_of

WEB = Path(__file__).parent / "web"
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; frame-ancestors 'self'"
)
"""A report is text of a run: it may look as it likes and do nothing."""


def routes(root: Path) -> list[Route | Mount]:
    """All of them; every other address is a page of the app."""

    def video(request: Request) -> Any:
        name = request.path_params["name"]
        for one in details(named(root, request), with_rows=False).videos:
            if one.name == name:
                return FileResponse(one.path, content_disposition_type="inline", filename=one.name)
        return problem("This run has no such video.", 404)

    def report(request: Request) -> Any:
        path = report_of(named(root, request))
        if path is None:
            return problem("This run has no report yet: it is written when the run ends.", 404)
        return FileResponse(path, headers={"Content-Security-Policy": REPORT_POLICY})

    def log(request: Request) -> Any:
        path = own_file(named(root, request).log_path)
        if path is None:
            return problem("This run has no log.", 404)
        return FileResponse(path, media_type="text/plain; charset=utf-8")

    async def page(request: Request) -> Response:
        return FileResponse(WEB / "index.html", headers={"Cache-Control": "no-cache"})

    async def nothing(request: Request) -> Response:
        return problem("There is nothing at this address.", 404)

    return [
        Route("/files/{run}/videos/{name}", answer(video)),
        Route("/files/{run}/report.html", answer(report)),
        Route("/files/{run}/log.txt", answer(log)),
        Route("/api/{rest:path}", nothing),
        Route("/files/{rest:path}", nothing),
        Mount("/web", Web(directory=WEB)),
        Route("/{rest:path}", page),
    ]


class Web(StaticFiles):
    """The page's own files. A browser asks each time whether they changed, so that an update shows at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Never a directory's listing, and nothing that begins with a dot."""
        if any(part.startswith(".") for part in Path(path).parts if part != "."):
            return problem("There is nothing at this address.", 404)
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
