"""`gymnast rewind`: one update of a training, repeated and written down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gymnast.cli.options import AsJson, RunsDir, Trust, echo_json, resolved_run
from gymnast.cli.process import imported
from gymnast.console import Console
from gymnast.errors import UsageError
from gymnast.metrics.table import progress

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
        float | None,
        typer.Option("--to", help="Env step; the iteration that contains it is repeated.", show_default=False),
    ] = None,
    update: Annotated[
        int | None, typer.Option("--update", min=1, help="Which update of that iteration (default: its last).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write (default: in the run's rewind folder).")
    ] = None,
    as_json: AsJson = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Repeat a run up to one update and write that update's batch, targets, losses and gradients.

    Training is exact, so what is written is what happened. A run trained with train.trace_hashes=true has logged
    hashes of every update, and they are compared.
    """
    run = resolved_run(reference, runs_dir, trust=trust)
    if to is None:
        raise UsageError(f"Say how far to go back, in env steps: gymnast rewind {reference} --to 20000")
    from gymnast.training.diagnostics import rewind as training  # torch, which mistakes do not wait for

    imported()
    target = training.find_target(run, int(to))
    with progress(Console(stderr=True), "repeating iterations", target.iteration) as bar:
        done = training.rewind(run, int(to), update=update, folder=output, on_iteration=lambda now, _: bar.update(now))
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
    proofs = {
        "equal": ("equal to what the run logged, to the bit", "green"),
        "different": (
            "different from what the run logged: another machine or torch, or an env that does not repeat",
            "red",
        ),
        "not traced": ("not compared: the run was trained without train.trace_hashes=true", None),
    }
    console.print(
        f"{run_id} iteration {done.target.iteration:,} (env steps up to {done.target.env_steps:,}), "
        f"{done.iterations} iteration{'s' * (done.iterations != 1)} repeated from {done.start}"
    )
    sentence, style = proofs[done.proof]
    console.print(f"hashes: {sentence}", style=style)
    table = Table(box=None, pad_edge=False)
    table.add_column("update", justify="right")
    names = [name for name in SHORT if name in done.updates[0]]
    for name in names:
        table.add_column(SHORT[name], justify="right", no_wrap=True)
    numbers = list(range(len(done.updates)))
    if len(numbers) > 12:
        numbers = [*numbers[:6], *numbers[-5:]]
    for number in numbers:
        cells = [f"{done.updates[number][name]:.3g}" for name in names]
        style = "bold" if number + 1 == done.update else None
        table.add_row(str(number + 1), *cells, style=style)
    console.print(table)
    console.print(f"update {done.update} written to {done.folder} (update.safetensors, update.json)")
