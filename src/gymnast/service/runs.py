"""Runs: list them, find one, and all that is known of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gymnast.errors import GymnastError, UsageError, did_you_mean
from gymnast.metrics.sinks.jsonl import NOT_METRICS, MetricRows
from gymnast.metrics.verdict import threshold_of
from gymnast.runs import checkpoint, index, lineage, stages
from gymnast.runs.compare import protocol_differences, rows_of
from gymnast.runs.index import RunRow
from gymnast.runs.labels import read_note
from gymnast.runs.lineage import Lineage
from gymnast.runs.refs import resolve_run, resolve_runs
from gymnast.runs.stages import StageRecord
from gymnast.runs.status import Status
from gymnast.runs.store import Run, runs_root
from gymnast.runs.when import parse_moment
from gymnast.service.progress import Progress, progress_of

LOOKED_AT = 2000
"""How many rows, from the last, are searched for the last known values."""
VIDEO_SUFFIXES = frozenset({".mp4", ".webm", ".gif"})
Notice = Callable[[str], None]


@dataclass(frozen=True)
class RunFilter:
    """Which runs a listing shows. Texts ignore case and take `*`; all that is given must fit."""

    env: str | None = None
    algo: str | None = None
    config: str | None = None
    status: str | None = None
    """running, finished, interrupted, failed or crashed."""
    tag: str | None = None
    solved: bool | None = None
    seed: int | None = None
    since: str | None = None
    """Created since: `7d`, `12h` (ago), `2026-11-16`, `2026-11-16T09:30`."""
    until: str | None = None
    """Created until; a date includes its day."""


@dataclass(frozen=True)
class ListedRun(RunRow):
    """A line of a listing."""

    note: str = ""


@dataclass(frozen=True)
class RankedRun(RunRow):
    """A line of a ranking by evaluated return."""

    measured: str = ""
    """How the return was measured: `100 episodes, sampled`."""
    measured_differently: tuple[str, ...] = ()
    """Settings that change what a return means and differ from the first run's."""


@dataclass(frozen=True)
class CheckpointEntry:
    """One checkpoint on disk."""

    name: str
    """As references have it: `step=120000`."""
    step: int
    best: bool
    last: bool
    stage: str | None = None
    """The stage of a plan that has ended with it."""


@dataclass(frozen=True)
class Video:
    """One video file of a run."""

    name: str
    path: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class RunDetails:
    """All that is known of one run but its settings and its curves."""

    id: str
    folder: str
    name: str
    """The config it came from, e.g. CartPole-v1:ppo."""
    status: Status
    """As written; its state may be `running` although the process is gone. `progress.state` knows."""
    progress: Progress
    threshold: float | None
    """The score from which the env counts as solved."""
    tags: tuple[str, ...]
    note: str
    lineage: Lineage
    checkpoints: tuple[CheckpointEntry, ...]
    videos: tuple[Video, ...]
    stages: tuple[StageRecord, ...]
    """Of a plan by stage: those that have begun."""
    last_row: dict[str, Any]
    """The last row of metrics; a metric that is not in every row may be null there."""
    latest: dict[str, float]
    """The last known value of each metric."""


def list_runs(
    root: Path | None = None,
    wanted: RunFilter | None = None,
    *,
    sort: str = "created",
    limit: int | None = None,
    notice: Notice = index.print_notice,
) -> list[ListedRun]:
    """Runs that fit, newest first or sorted: created, return, last-return, steps, time, env or config."""
    root, wanted = runs_root(root), wanted or RunFilter()
    filters: dict[str, Any] = dataclasses.asdict(wanted)
    if wanted.since:
        filters["since"] = parse_moment(wanted.since, "--since")
    if wanted.until:
        filters["until"] = parse_moment(wanted.until, "--until", end=True)
    rows = index.list_runs(root, **filters, sort=sort, limit=limit, notice=notice)
    return [ListedRun(**_fields(row), note=read_note(Run(root / row.id))) for row in rows]


def find_run(reference: str = "@last", root: Path | None = None, *, paths: bool = True) -> Run:
    """The run that a reference names: @last, @best, @best:ENV, an id or its beginning, a path.

    `paths=False` refuses paths: the choice for text that came over a network.
    """
    return resolve_run(runs_root(root), reference, paths=paths)


def find_runs(references: Sequence[str], root: Path | None = None, *, paths: bool = True) -> list[Run]:
    """The runs that references name, each once."""
    return resolve_runs(runs_root(root), references, paths=paths)


def details(run: Run, *, with_rows: bool = True) -> RunDetails:
    """What the folder of a run says about it. Without rows of metrics, which take a second where they are many."""
    rows, config = None, run.config()
    if with_rows:
        rows = rows_of(run)
    return RunDetails(
        id=run.id,
        folder=str(run.folder),
        name=str(config.get("name", "")),
        status=run.status(),
        progress=progress_of(run),
        threshold=threshold_of(config),
        tags=tuple(run.tags()),
        note=read_note(run),
        lineage=lineage.read(run.folder),
        checkpoints=_checkpoints(run),
        videos=_videos(run),
        stages=tuple(stages.read(run.folder)),
        last_row=next(reversed(rows), {}) if rows else {},
        latest=_latest(rows),
    )


def best_runs(
    root: Path | None = None, env: str | None = None, *, limit: int | None = None, notice: Notice = index.print_notice
) -> list[RankedRun]:
    """The best run of each env by evaluated return, or the ranking of one env."""
    root = runs_root(root)
    known = [row for row in index.list_runs(root, sort="return", notice=notice) if row.best_return is not None]
    if env is None:
        # Rows come best first, and the first row of an env is to stay.
        rows = list({row.env: row for row in reversed(known)}.values())[::-1]
        return [_ranked(root, row, row) for row in rows[:limit]]
    rows = [row for row in known if row.env.lower() == env.lower()]
    if not rows:
        raise UsageError(
            f"No run of '{env}' has been evaluated in '{root}'.{did_you_mean(env, {row.env for row in known})}"
        )
    return [_ranked(root, row, rows[0]) for row in rows[:limit]]


def _fields(row: RunRow) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(RunRow)}


def _ranked(root: Path, row: RunRow, first: RunRow) -> RankedRun:
    """With how the return was measured, and in what that differs from the first of the ranking."""
    try:
        config, top = Run(root / row.id).config(), Run(root / first.id).config()
    except GymnastError:
        config = top = {}
    evaluation: Any = config.get("eval")
    if not isinstance(evaluation, dict):  # a damaged file
        evaluation = {}
    different = protocol_differences([top, config])
    measured = f"{evaluation.get('episodes', '?')} episodes"
    if not evaluation.get("deterministic", True):
        measured += ", sampled"
    if different:
        measured += f"; other {', '.join(different)}"
    return RankedRun(**_fields(row), measured=measured, measured_differently=tuple(different))


def _checkpoints(run: Run) -> tuple[CheckpointEntry, ...]:
    best, last = (checkpoint.read_pointer(run.folder, pointer) for pointer in ("best", "last"))
    names = {f"step={step}": step for step in checkpoint.steps(run.folder)}
    masters = {target: stage for stage, target in checkpoint.masters(run.folder).items()}
    return tuple(
        CheckpointEntry(name, step, name == best, name == last, masters.get(name)) for name, step in names.items()
    )


def _videos(run: Run) -> tuple[Video, ...]:
    """Recorded files, by name. Links are left out: a run from elsewhere could name any file of this machine."""
    try:
        files = [path for path in run.videos.iterdir() if path.suffix.lower() in VIDEO_SUFFIXES]
        files = sorted(path for path in files if path.is_file() and not path.is_symlink())
        return tuple(Video(path.name, str(path), path.stat().st_size) for path in files)
    except OSError:
        return ()


def _latest(rows: MetricRows | None) -> dict[str, float]:
    """The last known value of each metric: evaluations are not in every row."""
    values: dict[str, float] = {}
    for row in islice(reversed(rows), LOOKED_AT) if rows else ():
        for name, value in row.items():
            if isinstance(value, (int, float)) and name not in NOT_METRICS:
                values.setdefault(name, value)
    return values
