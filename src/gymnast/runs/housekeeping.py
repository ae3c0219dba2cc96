"""Removing runs and old checkpoints. A live run is never touched, and a removal is whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gymnast.errors import UsageError
from gymnast.runs import checkpoint, index
from gymnast.runs.index import RunRow, list_runs
from gymnast.runs.labels import KEEP
from gymnast.runs.store import LAST, Run, is_id, last_run


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                total += os.lstat(f"{parent}/{name}").st_size
    return total


# --- remove -------------------------------------------------------------------------------------------------


def remove(runs: Iterable[Run]) -> None:
    """Delete runs with their index rows, all of one folder of runs; `@last` then means the newest of the others.

    Every run is locked before the first is touched, so that one that is being trained keeps them all.
    """
    runs = list(dict.fromkeys(runs))
    with contextlib.ExitStack() as locks:
        for run in runs:
            if not is_id(run.id):
                raise UsageError(f"'{run.folder}' is not in a folder of runs: delete it yourself.")
            refuse_live(run)
            locks.enter_context(run.lock())
        for run in runs:
            _erase(run)
    for root in dict.fromkeys(run.root for run in runs):
        _mend_last(root)
        for leftover in root.glob(".removed-*"):  # of a removal that was killed
            shutil.rmtree(leftover, ignore_errors=True)


def discard(run: Run, *, with_root: bool = False) -> None:
    """Remove the run that this very process trains and that never got anywhere.

    `with_root` also removes the folder of the runs, when this run was the first and only one in it.
    """
    _erase(run)
    _mend_last(run.root)
    if with_root and not list_runs(run.root):
        index.remove(run.root)
        with contextlib.suppress(OSError):  # something else is in it
            run.root.rmdir()


def refuse_live(run: Run) -> None:
    """A UsageError for a run that a process trains in."""
    if run.is_alive():
        status = run.status()
        raise UsageError(
            f"Run {run.id} is being trained by process {status.pid} on {status.host or 'this machine'}. "
            "Stop it first (Ctrl-C there), then try again."
        )


def _erase(run: Run) -> None:
    # Moved aside first: a process killed half-way through the removal leaves no half run behind.
    aside = run.root / f".removed-{run.id}-{os.getpid()}"
    try:
        run.folder.rename(aside)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"Run {run.id} cannot be removed: {error.strerror or error} ('{run.folder}').") from error
    shutil.rmtree(aside, ignore_errors=True)
    index.upsert(run)


def _mend_last(root: Path) -> None:
    """Point `@last` at the newest run when the one it meant is gone."""
    if last_run(root) is not None:
        return
    rows = list_runs(root, limit=1)
    if rows:
        Run.open(root, rows[0].id).point_last()
        return
    with contextlib.suppress(OSError):
        (root / LAST).unlink(missing_ok=True)


# --- prune --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Victim:
    """A run to remove, or the checkpoints of one, and why."""

    run: Run
    row: RunRow
    frees: int
    checkpoints: tuple[str, ...] = ()
    """Only these when given; the run stays."""


@dataclass(frozen=True)
class Rules:
    """Which runs may go. All that are given must agree."""

    keep_best: int | None = None
    """The best so many of each config stay."""
    older_than: timedelta | None = None
    """Since their last sign of life."""
    status: tuple[str, ...] = ()
    env: str | None = None


def victims(root: Path, rules: Rules, *, only_checkpoints: bool = False) -> list[Victim]:
    """What a prune would take. Never a live run or one tagged `keep`."""
    known = list_runs(root)
    for state in rules.status:
        list_runs(root, status=state, limit=0)  # an unknown state is a mistake, not an empty answer
    if rules.keep_best is not None:
        best = _best(known, rules.keep_best)
    else:
        best = set()
    oldest = None
    if rules.older_than is not None:
        oldest = datetime.now(UTC) - rules.older_than
    in_env = None
    if rules.env:
        in_env = {row.id for row in list_runs(root, env=rules.env)}
    found = []
    for row in known:
        run = Run(root / row.id)
        spared = KEEP in row.tags or row.status == "running" or row.id in best
        if spared or (rules.status and row.status not in rules.status) or (in_env is not None and row.id not in in_env):
            continue
        if oldest is not None and not _before(row.updated or row.created, oldest):
            continue
        if not only_checkpoints:
            found.append(Victim(run, row, size_of(run.folder)))
        elif names := _spare(run):
            found.append(Victim(run, row, sum(size_of(run.checkpoints / name) for name in names), tuple(names)))
    return found


def take(victims: Iterable[Victim], *, skipped: Callable[[str], None]) -> list[Victim]:
    """Remove what was chosen; a run that has started training meanwhile is skipped with a sentence."""
    taken = []
    for victim in victims:
        try:
            if victim.checkpoints:
                refuse_live(victim.run)
                with victim.run.lock():
                    checkpoint.prune(victim.run.folder, _kept(victim.run))
                    checkpoint.prune_bulk(victim.run.folder)
            else:
                remove([victim.run])
        except UsageError as error:
            skipped(str(error))
            continue
        taken.append(victim)
    return taken


def _kept(run: Run) -> int:
    """How many of the newest checkpoints stay besides `best` and `last`: one where `last` is not known."""
    if checkpoint.read_pointer(run.folder, "last"):
        return 0
    return 1


def _spare(run: Run) -> list[str]:
    """The checkpoints that `checkpoint.prune` would remove."""
    protected = {checkpoint.read_pointer(run.folder, name) for name in checkpoint.POINTERS}
    names = [f"step={step}" for step in reversed(checkpoint.steps(run.folder))]
    return [name for name in names[_kept(run) :] if name not in protected]


def _best(rows: list[RunRow], count: int) -> set[str]:
    """The ids of the best `count` evaluated runs of each config."""
    ranked: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.best_return is not None:
            ranked.setdefault(row.config, []).append(row)
    chosen = (sorted(group, key=lambda row: -(row.best_return or 0.0))[:count] for group in ranked.values())
    return {row.id for group in chosen for row in group}


def _before(moment: str, bound: datetime) -> bool:
    try:
        return datetime.fromisoformat(moment) < bound
    except (ValueError, TypeError):
        return False
