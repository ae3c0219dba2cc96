"""`gymnast eject`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.options import RunsDir


def eject(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: RUN.py here).", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Run the script and compare its weights.")] = False,
    runs_dir: RunsDir = None,
) -> None:
    """Write a run as one readable script of torch and gymnasium that gives the same weights to the bit."""
    from gymnast.cli import imported
    from gymnast.hub import eject as hub
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    imported()
    run = resolve_run(runs_root(runs_dir), reference)
    ejected = hub.eject(run)
    path = output or Path(f"{run.id}.py")
    hub.write(ejected, path)
    typer.echo(f"{path}  ({ejected.source.count(chr(10))} lines)")
    if ejected.resumed:
        typer.echo("The run was resumed: equal if every resume was exact and kept all settings (--check tells).")
    if not check:
        return
    result = hub.check(path)
    if result.digest == ejected.expected:
        typer.echo(f"equal to the bit: sha256 {result.digest}")
        return
    if result.digest is None:
        typer.echo(result.output.rstrip(), err=True)
        typer.echo("The script did not come to its end.", err=True)
    else:
        typer.echo(f"NOT equal: sha256 {result.digest}, the run has {ejected.expected}", err=True)
    raise typer.Exit(1)
