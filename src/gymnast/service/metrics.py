"""Metrics of runs as numpy arrays: whole curves, thinned for a screen, or what is new of a run that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gymnast.errors import UsageError, did_you_mean
from gymnast.metrics.charts.thinning import thinned
from gymnast.runs.store import Run
from gymnast.service.columns import Columns, Numbers
from gymnast.service.metric_names import Selection, Wanted

AXES = {"vec_steps": "vec_steps", "env_steps": "env_steps", "time": "time/seconds"}
"""What a curve may lie on, and the metric that says where its points are."""
DEFAULT_AXIS = "vec_steps"


@dataclass(frozen=True, eq=False)
class Series:
    """One metric of one run. Rows without it have no point; rows that a resume replaced are left out."""

    run: str
    name: str
    axis: str
    x: Numbers
    y: Numbers
    """Finite values only."""
    points: int
    """How many there are before they are thinned."""
    nonfinite: Numbers
    """Where on the axis the metric was NaN or infinite."""


@dataclass(frozen=True, eq=False)
class News:
    """What became known since the last look."""

    complete: bool
    """These are all points there are: forget those known before."""
    after: float | None
    """Else they replace the points beyond this place on the axis. None if nothing is new."""
    series: tuple[Series, ...]


def read_series(
    run: Run, metrics: Sequence[str], *, axis: str = DEFAULT_AXIS, points: int | None = None
) -> tuple[Series, ...]:
    """Metrics of a run: by name (ours, SB3's or CleanRL's), by pattern (`train/*`) or expression (`re:loss$`).

    `points` thins each to about that many, keeping the lowest and the highest of every stretch.
    """
    return LiveMetrics(run, metrics, axis=axis, points=points).everything()


def metric_names(run: Run) -> tuple[str, ...]:
    """What a run logs, in the order of its rows."""
    return LiveNames(run).now()


class LiveNames:
    """What a run that may still grow logs. It remembers how far it has read; one reader uses it."""

    def __init__(self, run: Run) -> None:
        self._columns = Columns(run.metrics_path, lambda name: False)

    def now(self) -> tuple[str, ...]:
        """All names so far, in the order of the rows."""
        self._columns.read()
        return tuple(self._columns.names)


class LiveMetrics:
    """Metrics of a run that may still grow. It remembers how far it has read; one reader uses it."""

    def __init__(
        self, run: Run, metrics: Sequence[str], *, axis: str = DEFAULT_AXIS, points: int | None = None
    ) -> None:
        if axis not in AXES:
            raise UsageError(f"Unknown axis '{axis}'.{did_you_mean(axis, AXES)} Known: {', '.join(AXES)}.")
        self._run, self._axis, self._points = run, axis, points
        self._selection = Selection(metrics)
        self._columns = Columns(run.metrics_path, self._is_needed)

    def _is_needed(self, name: str) -> bool:
        return name == AXES[self._axis] or name in self._selection

    def everything(self) -> tuple[Series, ...]:
        """All that is in the file now."""
        self._columns.read()
        return self._from(0)

    def within(self, low: float, high: float) -> tuple[Series, ...]:
        """What is known between two places on the axis, thinned anew: what a zoom shows. One point on each side belongs to it."""
        return self._from(0, (low, high))

    def news(self) -> News:
        """What was written since the last look, and no more than that is read.

        A resume replaces rows, and an evaluation next to training completes an earlier one, so what is new may begin
        before the last point.
        """
        known = len(self._columns)
        first = self._columns.read()
        if first == len(self._columns):
            return News(complete=False, after=None, series=self._from(first))
        axis = self._columns.columns.get(AXES[self._axis])
        after = None if axis is None else axis.before(first)
        return News(complete=known == 0 or after is None, after=after, series=self._from(first))

    def _from(self, first: int, window: tuple[float, float] | None = None) -> tuple[Series, ...]:
        wanted = self._selection.among(self._columns.names)
        return tuple(self._series(one, first, window) for one in wanted)

    def _series(self, wanted: Wanted, first: int, window: tuple[float, float] | None) -> Series:
        columns = self._columns.columns
        x, y = np.zeros(0), np.zeros(0)
        if wanted.column in columns and AXES[self._axis] in columns:
            rows, y = columns[wanted.column].since(first)
            known, places = columns[AXES[self._axis]].since(first)
            positions = np.full(len(self._columns) - first, np.nan)  # a row may lack its place on the axis
            positions[known - first] = places
            x, y = positions[rows - first], y * wanted.factor
        finite, placed = np.isfinite(y), np.isfinite(x)
        nonfinite = x[placed & ~finite]
        x, y = x[placed & finite], y[placed & finite]
        if window is not None:
            begin, end = np.searchsorted(x, window[0]), np.searchsorted(x, window[1], side="right")
            inside = slice(max(0, begin - 1), end + 1)
            x, y = x[inside], y[inside]
        count = len(x)
        if self._points is not None:
            kept = thinned(x, y, self._points)
            x, y = x[kept], y[kept]
            nonfinite = nonfinite[:: -(-len(nonfinite) // self._points) or 1]
        return Series(self._run.id, wanted.name, self._axis, x, y, count, nonfinite)
