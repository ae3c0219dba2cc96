"""`gymnast export`: a policy as ONNX or as a torch.export program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.agents import Env, NoVecNormalize, Reference, VecNormalize, load_agent
from gymnast.cli.options import RunsDir, Trust, echo


class Format(StrEnum):
    """What `--format` can say."""

    ONNX = "onnx"
    TORCH = "torch"


def export(
    reference: Reference = "@last",
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", help="onnx, or torch for a torch.export program (default: from the suffix of --output)."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: the run's exports folder, or here).")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare the file with the policy on random observations.")
    ] = True,
    env: Env = None,
    vecnormalize: VecNormalize = None,
    no_vecnormalize: NoVecNormalize = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Write the deterministic policy, normaliser included, as ONNX or as a torch.export program."""
    agent = load_agent(reference, env, vecnormalize, no_vecnormalize, runs_dir, trust)
    from gymnast.hub import export as hub  # torch, which a wrong reference does not wait for

    if format is None:
        format = Format.ONNX
        if output is not None and output.suffix in (".pt2", ".pt"):
            format = Format.TORCH
    folder = Path()
    if agent.run:
        folder = agent.run.folder / "exports"
    path = output or folder / f"{agent.checkpoint.removesuffix('.zip')}{hub.SUFFIXES[format]}"
    done = hub.export(agent, path, format.value, check=verify)
    echo(f"{done.path}  ({done.size / 1024:,.0f} KB, {agent.config.name} {agent.source})")
    echo(f"inputs: {', '.join(done.inputs)}   outputs: {', '.join(done.outputs)}")
    if done.check is not None:
        echo(done.check.sentence())
    for note in done.notes:
        echo(note)
