"""`gymnast eject`: a run as one script."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.options import RunsDir, Trust, echo, resolved_run
from gymnast.cli.process import imported


def eject(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: RUN.py here).", show_default=False)
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Run the script and compare its weights.")] = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Write a run as one readable script (torch and gymnasium only) that trains to the same bits."""
    run = resolved_run(reference, runs_dir, trust=trust)
    from gymnast.hub import eject as hub  # torch, which a wrong reference does not wait for

    imported()
    ejected = hub.eject(run)
    path = output or Path(f"{run.id}.py")
    hub.write(ejected, path)
    echo(f"{path}  ({ejected.source.count(chr(10))} lines)")
    if ejected.resumed:
        echo("The run was resumed: equal if every resume was exact and kept all settings (--verify tells).")
    if not verify:
        return
    result = hub.check(path)
    if result.digest == ejected.expected:
        echo(f"equal to the bit: sha256 {result.digest}")
        return
    if result.digest is None:
        echo(result.output.rstrip(), err=True)
        echo("The script did not finish.", err=True)
    else:
        echo(f"NOT equal: sha256 {result.digest}, the run has {ejected.expected}", err=True)
    raise typer.Exit(1)
