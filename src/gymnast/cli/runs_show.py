"""`gymnast runs show`: all that is known of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, RunsDir, echo_json
from gymnast.config.leaves import text_of
from gymnast.console import Console
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.verdict import shown
from gymnast.runs.lineage import Lineage, ancestors_of
from gymnast.runs.stages import aligned, table
from gymnast.runs.store import Run
from gymnast.service.configs import ConfigCard
from gymnast.service.plain import plain
from gymnast.service.runs import CheckpointEntry, RunDetails, details, find_run
from gymnast.service.settings import run_card

SCORES = ("eval/return_mean", "eval/exact_return")
"""Metrics that no rounding may lift to the threshold."""


def show(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Show one run: status, result, tags, note, lineage, checkpoints, settings, last metrics."""
    run = find_run(reference, runs_dir)
    found = details(run)
    card = run_card(run)
    if as_json:
        echo_json(_as_json(found, card))
    else:
        _print_run(found, card)


def _as_json(found: RunDetails, card: ConfigCard) -> dict[str, Any]:
    data = plain(found)
    pointed = {"best": [one.name for one in found.checkpoints if one.best]}
    pointed["last"] = [one.name for one in found.checkpoints if one.last]
    return {
        "id": found.id,
        "folder": found.folder,
        "status": data["status"] | {"state": found.progress.state},
        "progress": data["progress"],
        "tags": data["tags"],
        "note": found.note,
        "lineage": data["lineage"],
        "checkpoints": [one.name for one in found.checkpoints],
        **{name: next(iter(names), None) for name, names in pointed.items()},
        "videos": data["videos"],
        "stages": data["stages"],
        "config": plain(card.config),
        "origins": card.origins,
        "metrics": data["last_row"],
    }


def _print_run(found: RunDetails, card: ConfigCard) -> None:
    console, status = Console(highlight=False, markup=False), found.status
    title = f"{found.id}  {found.name}  {found.progress.state}"
    if status.stop_reason:
        title += f": {status.stop_reason}"
    console.print(title, style="bold")
    console.print(
        f"{status.vec_steps:,} vec steps ({status.env_steps:,} env steps) in {status.wall_seconds:.1f} s, "
        f"attempt {status.attempt}, {found.folder}"
    )
    for line in _scores(found):
        console.print(line)
    if status.eval_engine is not None:
        console.print(f"evaluations played by {_words(status.eval_engine)}")
    if found.tags:
        console.print(f"tags: {' '.join(found.tags)}")
    if found.note:
        console.print(f"note: {found.note}")
    for line in _lineage(found.lineage):
        console.print(line)
    console.print(f"checkpoints: {', '.join(map(_checkpoint, found.checkpoints)) or 'none'}")
    for line in aligned(table(found.stages)):
        console.print(line)
    if found.videos:
        console.print(f"videos: {', '.join(video.name for video in found.videos)}")
    _print_settings(console, Run(Path(found.folder)).typed, card)
    _print_metrics(console, found)


def _checkpoint(one: CheckpointEntry) -> str:
    """With a mark at the best and the last."""
    marks = [word for word, marked in (("best", one.best), ("last", one.last)) if marked]
    if one.stage is not None:
        marks.append(f"stage={one.stage}")
    if not marks:
        return one.name
    return f"{one.name} ({', '.join(marks)})"


def _print_settings(console: Console, run_id: str, card: ConfigCard) -> None:
    """What was set, in a preset or for this run; `gymnast config show` has the defaults."""
    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold", style="dim")
    for one in card.settings:
        if not one.default:
            table.add_row(Text(one.key), Text(_words(one.text)), Text(_words(one.origin)))
    console.print()
    console.print(table)
    console.print(f"defaults, too: gymnast config show {run_id}", style="dim")
    console.print()


def _scores(found: RunDetails) -> list[str]:
    """The verdict, and the best and the last evaluation."""
    status = found.status
    known = {"best": (status.best_return, status.best_at), "last": (status.last_return, status.last_at)}
    scores = []
    for name, (score, step) in known.items():
        if score is None:
            continue
        when = "" if step is None else f" at {step:,} env steps"
        scores.append(f"{name} {shown(score, found.threshold, digits=4)}{when}")
    lines = []
    if status.verdict is not None:
        lines.append(_words(status.verdict))
    if scores:
        lines.append(f"evaluations: {', '.join(scores)}")
    return lines


def _print_metrics(console: Console, found: RunDetails) -> None:
    catalogue, table = load_catalogue(), Table(box=None, pad_edge=False)
    table.add_column("metric", overflow="fold")
    table.add_column("value", overflow="fold")
    table.add_column("meaning", overflow="fold", style="dim")
    for name in catalogue.order(found.latest):
        metric, value = catalogue.get(name), found.latest[name]
        text = catalogue.format(name, value)
        if name in SCORES and found.threshold is not None:
            text = shown(value, found.threshold, digits=4)
        table.add_row(name, text, metric.meaning if metric else "")
    console.print(table)


def _lineage(found: Lineage) -> list[str]:
    lines = []
    if found.parent:
        lines += _beginning(found)
    for attempt in found.attempts:
        try:
            changes = [f"{key} {text_of(old)} → {text_of(new)}" for key, (old, new) in attempt.changes.items()]
        except (AttributeError, TypeError, ValueError):  # a damaged file
            changes = []
        if not attempt.optimizer:
            changes.append("without the optimizer's state")
        lines.append(_words(f"attempt {attempt.attempt}: from {attempt.start}" + ", ".join(["", *changes])))
    return lines


def _beginning(found: Lineage) -> list[str]:
    """The run whose weights this one began with, whose that one began with, and what was taken over."""
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
