"""Options and small pieces that several commands share."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from gymnast.redaction import redact, redact_tree
from gymnast.terminal import inert

if TYPE_CHECKING:
    from gymnast.runs.store import Run

RunsDir = Annotated[
    Path | None,
    typer.Option(
        "--runs-dir", "--log-folder", "-f", help="Folder that holds the runs (default: $GYMNAST_HOME or ./runs)."
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Let a run from elsewhere import the code that its config names; needed once per run."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
References = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="@last, an id, @best:ENV …", show_default=False)
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change, e.g. algo.clip_range=0.1.", show_default=False),
]


def resolved_run(reference: str, runs_dir: Path | None, *, trust: bool = False) -> Run:
    """The run a reference names; `trust` records that the user trusts it."""
    # Not every command that has these options reads runs.
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root
    from gymnast.runs.trust import accept

    run = resolve_run(runs_root(runs_dir), reference)
    if trust:
        accept(run)
    return run


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print plain text without secrets; whatever it was made of, the terminal obeys nothing in it."""
    typer.echo(inert(redact(text)), err=err, nl=nl)


def echo_secret(text: str) -> None:
    """Print text whose secret is meant for whoever reads it, such as an address with its token; otherwise as `echo`."""
    typer.echo(inert(text))


def echo_json(data: Any) -> None:
    """One JSON document on stdout, without secrets; strict, so NaN becomes null."""
    text = json.dumps(redact_tree(_finite(data)), indent=2, allow_nan=False)
    if _output is None:
        typer.echo(text)
    else:
        _output.write(text + "\n")
        _output.flush()


_output: TextIO | None = None
"""Where JSON goes while everything else that is printed goes to the error stream."""


def keep_output_for_json() -> None:
    """From now on only `echo_json` writes to standard output: what envs print, here or in their processes, is not JSON."""
    global _output  # noqa: PLW0603 - a process has one standard output
    with contextlib.suppress(OSError):  # a program without these streams
        sys.stdout.flush()
        _output = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)


def _finite(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data
