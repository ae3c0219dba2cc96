"""Runs as Python has them: what is on disk about each, its numbers, and its agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from gymnast.config.leaves import text_of
from gymnast.errors import UsageError
from gymnast.runs.store import Run as StoredRun
from gymnast.runs.store import runs_root
from gymnast.service.compare import SideBySide, side_by_side
from gymnast.service.frames import Library, metric_arrays, metric_frame
from gymnast.service.runs import RunDetails, RunFilter, details, find_run, list_runs

if TYPE_CHECKING:
    from gymnast.api.agent import Agent
    from gymnast.training.keeping.result import TrainResult

ALL = ("*",)


@dataclass(frozen=True)
class Run(StoredRun):
    """One run folder with what Python asks of it. The object holds only the path: everything else is read from disk."""

    def metrics(self, *names: str) -> dict[str, NDArray[Any]]:
        """One array per metric with a value per iteration, NaN where a row has none: all, or by name, pattern or SB3's name."""
        return metric_arrays(self, names or ALL)

    def frame(self, *names: str, library: Library = "auto") -> Any:
        """The same as a pandas or polars data frame; `auto` takes the one that is installed, pandas first."""
        return metric_frame(self, names or ALL, library=library)

    def details(self) -> RunDetails:
        """Status, progress, checkpoints, videos, lineage, tags and the last values of all metrics."""
        return details(self)

    def agent(self, checkpoint: str = "best", **options: Any) -> Agent:
        """Its policy: the best checkpoint, `last`, or `step=120000`; options as for `gymnast.load`."""
        from gymnast.api.loading import load  # torch

        return load(self, checkpoint=checkpoint, **options)

    def resume(self, *words: str, **settings: Any) -> TrainResult:
        """Continue it, see `gymnast.resume`."""
        from gymnast.api.training import resume  # torch

        return resume(self, *words, **settings)


def as_run(run: StoredRun) -> Run:
    """The same run with what Python asks of it."""
    if isinstance(run, Run):
        return run
    return Run(run.folder)


def runs(
    *,
    env: str | None = None,
    algo: str | None = None,
    config: str | None = None,
    status: str | None = None,
    tag: str | None = None,
    solved: bool | None = None,
    seed: int | None = None,
    since: str | None = None,
    until: str | None = None,
    sort: str = "created",
    limit: int | None = None,
    runs_dir: str | Path | None = None,
) -> list[Run]:
    """The runs that fit, newest first; the filters are those of `gymnast runs list`."""
    root = runs_root(Path(runs_dir) if runs_dir else None)
    wanted = RunFilter(env, algo, config, status, tag, solved, seed, since, until)
    return [Run(root / row.id) for row in list_runs(root, wanted, sort=sort, limit=limit)]


def run(reference: str | Path | StoredRun = "@last", *, runs_dir: str | Path | None = None) -> Run:
    """The run that a reference names: @last, @best, @best:ENV, an id or its beginning, a path."""
    if isinstance(reference, StoredRun):
        return as_run(reference)
    return as_run(find_run(str(reference), runs_root(Path(runs_dir) if runs_dir else None)))


@dataclass(frozen=True)
class Comparison:
    """Runs side by side: the settings that differ, how each did, and why their returns may not be comparable."""

    runs: tuple[Run, ...]
    found: SideBySide

    @property
    def settings(self) -> Mapping[str, tuple[Any, ...]]:
        """Keys that differ, with a value per run."""
        return self.found.comparison.settings

    @property
    def results(self) -> dict[str, tuple[Any, ...]]:
        """What came out, by name, with a value per run."""
        return {measure.name: measure.values for measure in self.found.comparison.results}

    @property
    def best(self) -> dict[str, list[Run]]:
        """The runs that did best, by result."""
        measures = self.found.comparison.results
        return {measure.name: [self.runs[place] for place in measure.best] for measure in measures}

    @property
    def warning(self) -> str | None:
        """Why the returns cannot be compared, or not quite; None if they can."""
        return self.found.warning

    def __str__(self) -> str:
        rows = [("", *(one.id for one in self.runs))]
        rows += [(key, *map(text_of, values)) for key, values in self.settings.items()]
        rows += [(name, *map(_cell, values)) for name, values in self.results.items()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *([self.warning] if self.warning else [])])


def compare(
    references: Sequence[str | Path | StoredRun], *metrics: str, runs_dir: str | Path | None = None
) -> Comparison:
    """Runs side by side, as `gymnast runs compare`; `metrics` are further ones, by their last value."""
    found = tuple(run(one, runs_dir=runs_dir) for one in references)
    if len(set(found)) < 2:
        raise UsageError(f"A comparison needs at least two different runs (got {len(set(found))}).")
    return Comparison(found, side_by_side(found, metrics))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if abs(value) < 1000:
            return f"{value:.4g}"
        return f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
