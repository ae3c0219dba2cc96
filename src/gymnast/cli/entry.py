"""What the `gymnast` command runs."""

from __future__ import annotations

import sys

from gymnast.cli.app import app
from gymnast.cli.debug import Tracebacks, print_traceback, print_without_secrets
from gymnast.cli.options import keep_output_for_json
from gymnast.cli.process import importing
from gymnast.errors import GymnastError
from gymnast.redaction import redact
from gymnast.terminal import inert, shortened

ASKED = "__complete"
"""`gymnast __complete WORD…` prints the completions of the last word; the scripts of `gymnast completion` ask by it."""


def main() -> None:
    """Run a command; a `GymnastError` becomes one paragraph and its exit code, never a traceback (unless --debug)."""
    if sys.argv[1:2] == [ASKED]:
        from gymnast.cli.complete import answer  # only on a Tab

        print("\n".join(map(inert, answer(sys.argv[2:]))))
        return
    importing()
    print_without_secrets()
    if "--json" in sys.argv and not {"--help", "-h"} & set(sys.argv):
        keep_output_for_json()
    try:
        app()
    except GymnastError as error:
        if Tracebacks.wanted:
            sys.excepthook = print_traceback
            raise
        paragraph = str(error).partition("\n\n")[0]  # a worker's traceback follows
        print(f"error: {inert(shortened(redact(paragraph)))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        if Tracebacks.wanted:
            raise
        print("\nstopped at once", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception:
        sys.excepthook = print_traceback  # here, because Typer sets its own before every command
        raise
