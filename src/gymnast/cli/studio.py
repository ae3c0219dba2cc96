"""`gymnast studio`: the web app of this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnast.cli.options import RunsDir, echo_secret
from gymnast.errors import MissingPackageError
from gymnast.runs.store import runs_root


def studio(
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on; with any address but this machine's own, visitors need a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=0, max=65535, help="Port (default: the first free one from 7860).")
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", envvar="GYMNAST_STUDIO_TOKEN", help="Token that visitors need.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    runs_dir: RunsDir = None,
) -> None:
    """Open the studio: see runs live, compare them, scrub episodes, play, and start trainings in the browser."""
    try:
        from gymnast.studio.serve import serve  # an extra
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "websockets", "anyio"):
            raise
        raise MissingPackageError("The studio", "studio") from None
    serve(runs_root(runs_dir), host=host, port=port, token=token, browser=browser, say=_say)


def _say(text: str) -> None:
    """Print the address as it is: its token is a secret that this terminal is meant to see."""
    echo_secret(text)
