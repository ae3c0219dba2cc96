"""How commands name an agent: a run, one of its checkpoints, or a model file of Stable-Baselines3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gymnast.cli.options import echo
from gymnast.cli.process import imported
from gymnast.errors import UsageError
from gymnast.hub.references import check_reference, is_model_file
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import runs_root

if TYPE_CHECKING:
    from gymnast.api import Agent

Reference = Annotated[
    str,
    typer.Argument(
        metavar="RUN[/CHECKPOINT]",
        help="@last, an id, @best:ENV, @last/step=5000 …, or a Stable-Baselines3 PPO or A2C model.zip.",
    ),
]
Env = Annotated[str | None, typer.Option("--env", help="Environment for a model.zip.")]
VecNormalize = Annotated[
    Path | None,
    typer.Option("--vecnormalize", help="VecNormalize file of a model.zip (default: vecnormalize.pkl next to it)."),
]
NoVecNormalize = Annotated[bool, typer.Option("--no-vecnormalize", help="Use no VecNormalize file.")]


def names_run(reference: str) -> bool:
    """Whether a reference can only be of a run or a model file."""
    return reference.startswith("@") or reference.endswith(".zip") or Path(reference).exists()


def names_config(reference: str) -> bool:
    """Whether it looks like an env or a config, and not like a run."""
    return not names_run(reference) and (":" in reference or "-v" in reference)


def load_agent(
    reference: str,
    env: str | None,
    vecnormalize: Path | None,
    none: bool,
    runs_dir: Path | None,
    trust: bool = False,
) -> Agent:
    """The agent that a reference names; mistakes in the reference are reported before torch is imported."""
    if none and vecnormalize is not None:
        raise UsageError("--vecnormalize and --no-vecnormalize contradict each other: give one.")
    choice: Path | Literal[False] | None = vecnormalize
    if none:
        choice = False
    check_reference(reference, env, choice)
    if not is_model_file(reference):
        resolve_checkpoint(runs_root(runs_dir), reference)
    from gymnast import api  # torch, which mistakes do not wait for

    imported()
    agent = api.load(reference, env=env, vecnormalize=choice, runs_dir=runs_dir, trust=trust)
    for notice in agent.notices:
        echo(notice, err=True)
    return agent
