"""`gymnast wandb …`: what is set up at W&B besides runs."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnast.cli.options import RunsDir, echo
from gymnast.runs.refs import resolve_run
from gymnast.runs.store import runs_root
from gymnast.service.tracking.workspace import save_workspace


def workspace(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="A run of the project: @last, an id, @best:ENV …")] = (
        "@last"
    ),
    entity: Annotated[
        str | None, typer.Option("--entity", help="User or team (default: the logged-in user).", show_default=False)
    ] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Make a dashboard at W&B for the project of a run: grouped charts with sensible limits; prints its address."""
    run = resolve_run(runs_root(runs_dir), reference)
    echo(save_workspace(run, entity))
