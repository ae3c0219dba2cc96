"""`gymnast runs show`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.cli.options import AsJson, RunsDir, echo_json

if TYPE_CHECKING:
    from gymnast.runs.lineage import Lineage
    from gymnast.runs.store import Run


def show(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """One run: status, result, tags, note, lineage, checkpoints, last metrics."""
    from gymnast.runs import checkpoint, lineage
    from gymnast.runs.compare import rows_of
    from gymnast.runs.labels import read_note
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    run = resolve_run(runs_root(runs_dir), reference)
    rows = rows_of(run)
    if as_json:
        echo_json(
            {
                "id": run.id,
                "folder": str(run.folder),
                "status": dataclasses.asdict(run.status()) | {"state": run.shown_state()},
                "tags": run.tags(),
                "note": read_note(run),
                "lineage": dataclasses.asdict(lineage.read(run.folder)),
                "checkpoints": [f"step={step}" for step in checkpoint.steps(run.folder)],
                "best": checkpoint.read_pointer(run.folder, "best"),
                "last": checkpoint.read_pointer(run.folder, "last"),
                "metrics": rows[-1] if rows else {},
            }
        )
    else:
        _print_run(run, rows)


def _print_run(run: Run, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from gymnast.runs import checkpoint, lineage
    from gymnast.runs.labels import read_note

    console, status = Console(highlight=False, markup=False), run.status()
    console.print(
        f"{run.id}  {run.config().get('name', '')}  {run.shown_state()}"
        + (f": {status.stop_reason}" if status.stop_reason else ""),
        style="bold",
    )
    console.print(
        f"{status.env_steps:,} env steps in {status.wall_seconds:.1f} s, attempt {status.attempt}, {run.folder}"
    )
    if tags := run.tags():
        console.print(f"tags: {' '.join(tags)}")
    if note := read_note(run):
        console.print(f"note: {note}")
    for line in _lineage(lineage.read(run.folder)):
        console.print(line)
    best, newest = (checkpoint.read_pointer(run.folder, pointer) for pointer in ("best", "last"))
    marks = {best: " (best)", newest: " (last)"} if best != newest else {best: " (best, last)"}
    names = [f"step={step}" for step in checkpoint.steps(run.folder)]
    console.print("checkpoints: " + (", ".join(name + marks.get(name, "") for name in names) or "none"))
    _print_metrics(console, rows)


def _print_metrics(console: Any, rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from gymnast.metrics.catalogue import load_catalogue

    catalogue, table = load_catalogue(), Table(box=None, pad_edge=False)
    for column in ("metric", "value", "meaning"):
        table.add_column(column, overflow="fold", style="dim" if column == "meaning" else None)
    values = _latest(rows)
    for name in catalogue.order(values):
        metric = catalogue.get(name)
        table.add_row(name, catalogue.format(name, values[name]), metric.meaning if metric else "")
    console.print(table)


def _latest(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The last known value of each metric (evaluations are not in every row)."""
    values: dict[str, float] = {}
    for row in rows[-2000:]:
        values |= {
            name: value
            for name, value in row.items()
            if isinstance(value, (int, float)) and name not in ("attempt", "resumed_from")
        }
    return values


def _lineage(found: Lineage) -> list[str]:
    lines = _beginning(found) if found.parent else []
    for attempt in found.attempts:
        try:
            changes = [f"{key} {old} → {new}" for key, (old, new) in attempt.changes.items()]
        except (AttributeError, TypeError, ValueError):  # a damaged file
            changes = []
        if not attempt.optimizer:
            changes.append("without the optimizer's state")
        lines.append(_words(f"attempt {attempt.attempt}: from {attempt.start}" + ", ".join(["", *changes])))
    return lines


def _beginning(found: Lineage) -> list[str]:
    """The run whose weights this one began with, whose that one began with, and what was taken over."""
    from gymnast.runs.lineage import ancestors_of

    parent: Any = found.parent
    chain = " ← ".join(ancestors_of(found))
    if not chain or not isinstance(parent.get("skipped"), dict):  # a damaged file, or another's
        return [f"began from: {_words(parent)}"]
    lines = [f"began from: {chain}", f"  {parent.get('comparison')}", f"  loaded: {_words(parent.get('loaded'))}"]
    lines += [f"  not loaded: {name} ({why})" for name, why in parent["skipped"].items()]
    return [_words(line) for line in lines]


def _words(value: Any) -> str:
    """A small tree in one printable line."""
    if isinstance(value, dict):
        value = ", ".join(f"{key} {_words(item)}" for key, item in value.items() if item not in (None, {}, []))
    elif isinstance(value, list):
        value = " ".join(_words(item) for item in value)
    return "".join(letter for letter in str(value) if letter.isprintable())
