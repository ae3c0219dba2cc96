"""The command line: one file per group of commands, each importing what it needs when it runs (RUN-10)."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Ctrl-C ends the process on the spot, while there is nothing to lose: packages are imported, an episode is played.

    An exception would be swallowed when it strikes inside a callback or destructor of some package, and the command go on.
    """
    old = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)


def _leave(number: int, frame: FrameType | None) -> None:
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar may have hidden it
    os.write(2, show_cursor + b"\nstopped at once\n")
    os._exit(130)


def main() -> None:
    """Run a command; a `GymnastError` becomes one paragraph and its exit code, never a traceback (unless --debug)."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    # Importing makes a hundred thousand objects and no garbage: collecting meanwhile costs a tenth of the start-up.
    # `imported` switches it on again.
    gc.disable()
    from gymnast.cli.app import app
    from gymnast.errors import GymnastError

    try:
        app()
    except GymnastError as error:
        if debug:
            sys.excepthook = _print_traceback
            raise
        from gymnast.redaction import redact

        paragraph = str(error).partition("\n\n")[0]  # a worker's traceback follows
        print(f"error: {redact(paragraph)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        if debug:
            raise
        print("\nstopped at once", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception:
        sys.excepthook = _print_traceback  # here, because Typer sets its own before every command
        raise


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback shows the values that were being worked on, and must not show secrets."""
    import traceback

    from gymnast.redaction import redact

    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))


def imported() -> None:
    """Collect garbage again; what the imports made stays for good and need not be looked at."""
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # else what the frozen ones hold outlives ALE's extension, which complains of leaks
