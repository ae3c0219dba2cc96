"""`gymnast rewind`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gymnast.cli import imported
from gymnast.cli.options import AsJson, RunsDir, echo_json

SHORT = {
    "train/policy_loss": "policy loss",
    "train/value_loss": "value loss",
    "train/entropy": "entropy",
    "train/approx_kl": "kl",
    "train/clip_fraction": "clipped",
    "train/grad_norm": "grad norm",
}
"""Columns of the summary; everything is in the files."""


def rewind(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, or a folder.")] = "@last",
    to: Annotated[
        float | None, typer.Option("--to", help="Env step: the iteration that took it is repeated.", show_default=False)
    ] = None,
    update: Annotated[
        int | None, typer.Option("--update", min=1, help="Which update of that iteration (default: its last).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write (default: in the run's rewind folder).")
    ] = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Repeat a training up to one update and write its batch, targets, losses and gradients.

    Training is exact, so what is written is what happened. A run trained with train.trace_hashes=true has logged
    hashes of every update, and they are compared.
    """
    from gymnast.errors import UsageError
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    run = resolve_run(runs_root(runs_dir), reference)
    if to is None:
        raise UsageError(f"Say how far to go back, in env steps: gymnast rewind {reference} --to 20000")
    from rich.console import Console

    from gymnast.metrics.table import progress
    from gymnast.training.rewind import find_target
    from gymnast.training.rewind import rewind as repeat

    imported()
    target = find_target(run, int(to))
    with progress(Console(stderr=True), "repeating iterations", target.iteration) as bar:
        done = repeat(run, int(to), update=update, folder=output, on_iteration=lambda now, _: bar.update(now))
    if as_json:
        echo_json({"run": run.id, "folder": str(done.folder), **_facts(done), "losses": done.updates})
        return
    _print(Console(), run.id, done)


def _facts(done: Any) -> dict[str, Any]:
    return {
        "iteration": done.target.iteration,
        "env_steps": done.target.env_steps,
        "update": done.update,
        "updates": len(done.updates),
        "from": done.start,
        "iterations_repeated": done.iterations,
        "proof": done.proof,
    }


def _print(console: Any, run_id: str, done: Any) -> None:
    from rich.table import Table

    proofs = {
        "equal": "[green]equal to what the run logged, to the bit[/green]",
        "different": "[red]different from what the run logged[/red]: another machine or torch, or an env that does not repeat",
        "not traced": "not compared: the run was trained without train.trace_hashes=true",
    }
    console.print(
        f"[bold]{run_id}[/bold] iteration {done.target.iteration:,} (env steps up to {done.target.env_steps:,}), "
        f"{done.iterations} iteration{'s' * (done.iterations != 1)} repeated from {done.start}"
    )
    console.print(f"hashes: {proofs[done.proof]}")
    table = Table(box=None, pad_edge=False)
    table.add_column("update", justify="right")
    names = [name for name in SHORT if name in done.updates[0]]
    for name in names:
        table.add_column(SHORT[name], justify="right", no_wrap=True)
    n = len(done.updates)
    for number in range(n) if n <= 12 else [*range(6), *range(n - 5, n)]:
        cells = [f"{done.updates[number][name]:.3g}" for name in names]
        table.add_row(str(number + 1), *cells, style="bold" if number + 1 == done.update else None)
    console.print(table)
    console.print(f"update {done.update} written to {done.folder} (update.safetensors, update.json)")
