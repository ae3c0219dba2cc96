"""Where two runs diverge (STO-6): the first iteration, metric and tensor, and the config keys that explain it.

Rows and checkpoints are compared to the bit. Times and memory are left out, and whatever a changed evaluation or log
setting is meant to change. Pure reading; torch is not needed.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnast.config.compare import compare
from gymnast.config.leaves import leaves
from gymnast.errors import CheckpointError, UsageError
from gymnast.metrics.sinks.jsonl import STEP, MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.diff.checkpoints import Difference, compare_checkpoints
from gymnast.runs.diff.keys import KeyChange, classify
from gymnast.runs.diff.rows import Ignored, Parting, compare_rows
from gymnast.runs.store import Run
from gymnast.runs.trust import usable


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    id: str
    config: str
    seed: int | None
    iterations: int
    env_steps: int
    versions: dict[str, str]
    host: str
    resumed_from: list[int]
    """Env steps at which later attempts took over."""


@dataclass(frozen=True)
class RunDiff:
    """Everything `gymnast diff` says."""

    a: Side
    b: Side
    parting: Parting | None
    """Of training; None when it is equal as far as both go."""
    evaluation: Parting | None
    """Of the evaluations; looked for only where training is equal."""
    iterations: int
    """How many common ones were compared and equal."""
    checkpoints: list[int]
    """Steps of the common checkpoints that are equal."""
    differing_checkpoint: int | None
    tensors: list[Difference]
    """Of that checkpoint, all of them."""
    keys: list[KeyChange]
    """Config keys that differ, those that explain most first."""
    versions: dict[str, tuple[str, str]]
    notes: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    """What could not be read."""

    @property
    def equal(self) -> bool:
        """Whether nothing that was compared differs."""
        return self.parting is None and self.evaluation is None and self.differing_checkpoint is None


def diff_runs(first: Run, second: Run) -> RunDiff:
    """Compare two runs; damaged checkpoints are named in `trouble` and left out."""
    trouble: list[str] = []
    configs = [run.config() for run in (first, second)]
    keys = classify(_config_changes(first, second), *configs)
    ignored = Ignored(keys, configs)
    steps = sorted(set(checkpoint.steps(first.folder)) & set(checkpoint.steps(second.folder)))
    with _unreadable_rows(trouble):
        rows = [_rows(run) for run in (first, second)]
        sides = [_side(run, config, row) for run, config, row in zip((first, second), configs, rows)]
        parting, evaluation, compared, notes = compare_rows(rows[0] or [], rows[1] or [], ignored)
    ends = sides[0].env_steps != sides[1].env_steps
    shorter = min(side.env_steps for side in sides)
    if not compared and parting is None and not steps:
        raise UsageError(
            f"Nothing to compare: runs {first.id} and {second.id} have no iteration and no checkpoint in common."
        )
    same: list[int] = []
    tensors: list[Difference] = []
    differing: int | None = None
    for step in steps:
        folders = [run.checkpoints / f"step={step}" for run in (first, second)]
        try:
            # What a checkpoint remembers of evaluations follows from them; a run that ends is evaluated once more.
            evaluated = evaluation is not None or (ends and step >= shorter)
            tensors = compare_checkpoints(
                folders[0], folders[1], functools.partial(ignored.state, evaluation=evaluated)
            )
        except CheckpointError as error:
            trouble.append(str(error))
            continue
        if tensors:
            differing = step
            break
        same.append(step)
    names = dict.fromkeys([*sides[0].versions, *sides[1].versions])
    pairs = {name: (sides[0].versions.get(name, "?"), sides[1].versions.get(name, "?")) for name in names}
    versions = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    notes = [*ignored.notes, *notes]
    return RunDiff(
        sides[0], sides[1], parting, evaluation, compared, same, differing, tensors, keys, versions, notes, trouble
    )


@contextlib.contextmanager
def _unreadable_rows(trouble: list[str]) -> Iterator[None]:
    """What is said about rows that had to be left out goes to `trouble`, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    trouble += dict.fromkeys(f"{warning.message}." for warning in caught)


def _rows(run: Run) -> MetricRows | None:
    try:
        return MetricRows(run.metrics_path)
    except FileNotFoundError:  # stopped before its first row
        return None
    except OSError as error:
        raise UsageError(
            f"The metrics of run {run.id} cannot be read ('{run.metrics_path}'): {error.strerror}."
        ) from error


def _config_changes(first: Run, second: Run) -> list[tuple[str, Any, Any]]:
    try:
        both = [usable(run, playing=False) for run in (first, second)]
    except UsageError:  # of another version, or of a plug-in that must not be imported: key by key as they are
        plain = [
            leaves({k: v for k, v in run.config().items() if k not in ("name", "spec")}) for run in (first, second)
        ]
        names = dict.fromkeys([*plain[0], *plain[1]])
        return [(k, plain[0].get(k), plain[1].get(k)) for k in names if plain[0].get(k) != plain[1].get(k)]
    found = compare(both[0], both[1])
    # Another algorithm has other keys; that they are missing follows from its name.
    other = any(change.key == "algo.id" for change in found)
    one_sided = [change for change in found if None in (change.old_from, change.new_from)]
    return [(change.key, change.old, change.new) for change in found if not (other and change in one_sided)]


def _side(run: Run, config: dict[str, Any], rows: MetricRows | None) -> Side:
    last = next(reversed(rows), {}) if rows else {}
    return Side(
        id=run.id,
        config=str(config.get("name", "")),
        seed=(config.get("train") or {}).get("seed"),
        iterations=int(last.get("iteration", len(rows or ()))),
        env_steps=int(last.get(STEP, 0)),
        versions=_versions(run.folder),
        host=run.status().host,
        resumed_from=rows.resumed_from if rows else [],
    )


def _versions(folder: Path) -> dict[str, str]:
    """As the newest readable checkpoint says."""
    for step in reversed(checkpoint.steps(folder)):
        try:
            return checkpoint.read_manifest(folder / "checkpoints" / f"step={step}").versions
        except CheckpointError:
            continue
    return {}
