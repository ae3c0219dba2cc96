"""A glimpse of many runs: the curve of the return in a few points, and how many alerts there are.

Both need the whole file of metrics, so they are remembered until it changes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.errors import GymnastError, UsageError
from gymnast.metrics.alerts.alert import SEVERITIES
from gymnast.runs.store import Run
from gymnast.service.health import alerts_of
from gymnast.service.metrics import read_series
from gymnast.service.runs import find_run

CURVE = ("rollout/return_mean", "eval/return_mean")
"""The first of these that a run has."""
POINTS = 40
MOST_AT_ONCE = 100
REMEMBERED = 5000
LARGEST_FOR_ALERTS = 8_000_000
"""Bytes of metrics beyond which the alerts of a run are only on its own page: the rules take a millisecond per 25 rows."""


@dataclass(frozen=True)
class Glimpse:
    """What a row of the list shows of a run's course."""

    curve: tuple[float, ...]
    alerts: dict[str, int] | None
    """How many of each severity; None if the file is too long for a list."""


class Glimpses:
    """Of the runs of one store."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: OrderedDict[str, tuple[tuple[int, int], Glimpse]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, ids: Sequence[str]) -> dict[str, Any]:
        """By run id; runs that are gone or cannot be read have none."""
        if len(ids) > MOST_AT_ONCE:
            raise UsageError(f"Up to {MOST_AT_ONCE} runs at once.")
        found: dict[str, Any] = {}
        for name in ids:
            try:
                found[name] = self._glimpse(find_run(name, self._root, paths=False))
            except (GymnastError, OSError):
                found[name] = None
        return found

    def _glimpse(self, run: Run) -> Glimpse:
        stat = run.metrics_path.stat()
        stamp = (stat.st_size, stat.st_mtime_ns)
        with self._lock:
            known = self._known.get(run.id)
        if known is not None and known[0] == stamp:
            return known[1]
        glimpse = Glimpse(_curve(run), _alerts(run, stat.st_size))
        with self._lock:
            self._known[run.id] = (stamp, glimpse)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return glimpse


def _curve(run: Run) -> tuple[float, ...]:
    for series in read_series(run, CURVE, points=POINTS):
        if len(series.y) > 1:
            return tuple(series.y.tolist())
    return ()


def _alerts(run: Run, size: int) -> dict[str, int] | None:
    if size > LARGEST_FOR_ALERTS:
        return None
    alerts = alerts_of(run)
    return {severity: sum(alert.severity == severity for alert in alerts) for severity in SEVERITIES}
