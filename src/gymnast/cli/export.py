"""`gymnast export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.agents import Env, NoVecNormalize, Reference, VecNormalize, load_agent
from gymnast.cli.options import RunsDir


class Format(StrEnum):
    """What can be written."""

    ONNX = "onnx"
    TORCH = "torch"


def export(
    reference: Reference = "@last",
    format: Annotated[
        Format | None,
        typer.Option("--format", help="onnx, or torch for a torch.export program (default: by --output's ending)."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: the run's exports folder, or here).")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Compare the file with the policy on random observations.")
    ] = True,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    runs_dir: RunsDir = None,
) -> None:
    """Write the deterministic policy, normaliser included, as ONNX or as a torch.export program."""
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir)

    from gymnast.hub.export import SUFFIXES
    from gymnast.hub.export import export as write

    if format is None:
        format = Format.TORCH if output is not None and output.suffix in (".pt2", ".pt") else Format.ONNX
    folder = agent.run.folder / "exports" if agent.run else Path()
    path = output or folder / f"{agent.checkpoint.removesuffix('.zip')}{SUFFIXES[format]}"
    done = write(agent, path, format.value, check=check)
    typer.echo(f"{done.path}  ({done.size / 1024:,.0f} KB, {agent.config.name} {agent.source})")
    typer.echo(f"inputs: {', '.join(done.inputs)}   outputs: {', '.join(done.outputs)}")
    if done.check is not None:
        typer.echo(done.check.sentence())
    for note in done.notes:
        typer.echo(note)
