"""`--debug`: a traceback where otherwise one sentence is printed."""

from __future__ import annotations

import sys
import threading
import traceback
from types import TracebackType
from typing import Annotated, ClassVar

import typer

from gymnast.redaction import redact
from gymnast.terminal import inert


class Tracebacks:
    """Whether this command shows them. `main` reads it after the parser, and its contexts, are gone."""

    wanted: ClassVar[bool] = False


def _want(given: bool) -> bool:
    if given:
        Tracebacks.wanted = True
    return given


HELP = "Show a traceback instead of a sentence when something fails."
ShownDebug = Annotated[bool, typer.Option("--debug", help=HELP, callback=_want)]
Debug = Annotated[bool, typer.Option("--debug", help=HELP, callback=_want, expose_value=False, hidden=True)]
"""The same after a group or a command, whose own help does not repeat it."""


def print_without_secrets() -> None:
    """Print uncaught exceptions of threads and destructors as `print_traceback` does."""
    threading.excepthook = lambda gone: print_traceback(gone.exc_type, gone.exc_value, gone.exc_traceback)
    sys.unraisablehook = lambda gone: print_traceback(gone.exc_type, gone.exc_value, gone.exc_traceback)


def print_traceback(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Print a traceback without secrets: it shows the values that were being worked on."""
    sys.stderr.write(inert(redact("".join(traceback.format_exception(kind, error, trace)))))
