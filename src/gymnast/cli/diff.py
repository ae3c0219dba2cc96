"""`gymnast diff`: where two runs diverge, and why."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from gymnast.cli.options import AsJson, RunsDir, echo_json
from gymnast.config.leaves import text_of
from gymnast.console import Console
from gymnast.errors import GymnastError, UsageError
from gymnast.runs.diff import as_json as to_json
from gymnast.runs.diff import diff_runs
from gymnast.runs.diff.compare import RunDiff
from gymnast.runs.diff.rows import Parting
from gymnast.runs.diff.text import pair
from gymnast.runs.diff.verdict import verdict
from gymnast.runs.refs import resolve_run
from gymnast.runs.store import runs_root

Reference = Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV, a path …", show_default=False)]
SHOWN = 12


def diff(a: Reference, b: Reference, as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Find where two runs diverge: the first iteration, metric and tensor, and the config keys that explain it.

    Exit code: 0 equal, 1 different, 2 wrong usage or nothing that can be compared.
    """
    root = runs_root(runs_dir)
    try:
        found = diff_runs(resolve_run(root, a), resolve_run(root, b))
    except GymnastError as error:
        raise UsageError(str(error)) from error  # 1 says that they differ
    if as_json:
        echo_json(to_json(found))
    else:
        _print(found)
    if not found.equal:
        raise typer.Exit(1)
    if found.trouble:
        raise typer.Exit(2)


def _print(found: RunDiff) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for label, side in (("A", found.a), ("B", found.b)):
        resumed = "".join(f", resumed at {step:,}" for step in side.resumed_from)
        console.print(
            f"{label}  {side.id}  {side.config}, seed {side.seed}: "
            f"{side.iterations:,} iterations, {side.env_steps:,} env steps{resumed}"
        )
    console.print()
    console.print(verdict(found), style="green" if found.equal else "bold")
    if parting := found.parting or found.evaluation:
        _print_metrics(console, parting)
    if found.differing_checkpoint is not None:
        _print_tensors(console, found)
    _print_keys(console, found)
    for name, (a, b) in found.versions.items():
        console.print(f"version of {name}: {a} → {b}")
    if found.a.host != found.b.host:
        console.print(f"machine: {found.a.host} → {found.b.host}")
    for note in found.notes:
        console.print(note[:1].upper() + note[1:] + ".", style="dim")
    for sentence in found.trouble:
        Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"not compared: {sentence}")


def _print_metrics(console: Console, parting: Parting) -> None:
    before = "no equal iteration before it"
    if parting.last_equal is not None:
        before = f"equal up to iteration {parting.last_equal:,}"
    console.print(f"\nIteration {parting.iteration:,} ({before}), in the order of cause and effect:")
    table = Table(box=None, pad_edge=False)
    table.add_column("metric", no_wrap=True)
    table.add_column("A", no_wrap=True, justify="right")
    table.add_column("B", no_wrap=True, justify="right")
    table.add_column("part of", no_wrap=True)
    for change in parting.metrics[:SHOWN]:
        table.add_row(change.name, *pair(change.a, change.b), change.stage)
    console.print(table)
    if len(parting.metrics) > SHOWN:
        console.print(f"… and {len(parting.metrics) - SHOWN} more")


def _print_tensors(console: Console, found: RunDiff) -> None:
    equal = "the first common one"
    if found.checkpoints:
        equal = f"{len(found.checkpoints)} equal before it"
    console.print(f"\nCheckpoint step={found.differing_checkpoint} ({equal}):")
    groups: dict[str, int] = {}
    for difference in found.tensors:
        groups[difference.group] = groups.get(difference.group, 0) + 1
    shown: set[str] = set()
    for difference in found.tensors:
        if difference.group not in shown:
            shown.add(difference.group)
            more = groups[difference.group] - 1
            rest = f"; {more} more in {difference.group}" if more else ""
            console.print(f"  {difference.sentence()}{rest}")


def _print_keys(console: Console, found: RunDiff) -> None:
    if not found.keys:
        if not found.equal:  # the verdict of equal runs is one line, which this one follows
            console.print()
        console.print("The configs are the same.")
        return
    console.print("\nConfig keys that differ:")
    table = Table(box=None, pad_edge=False)
    for column in ("key", "A", "B", ""):
        table.add_column(column, overflow="fold")
    meanings = {
        "training": "no effect so far" if found.equal else "can explain it",
        "rounding": "should not matter",
        "harmless": "harmless",
    }
    for change in found.keys:
        meaning = meanings[change.role]
        if change.why:
            meaning += f": {change.why}"
        table.add_row(change.key, text_of(change.a), text_of(change.b), meaning)
    console.print(table)
