"""What has been logged so far: the latest values, their course, and the running window of episodes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

KEPT = 256
"""Latest values kept per metric."""
POINTS = 64
"""A whole-run trend has at most twice this many points."""


class _Trace:
    """One metric: last values exactly, the whole run as means of equal stretches (bounded memory)."""

    __slots__ = ("count", "last", "points", "previous", "recent", "stride", "total")

    def __init__(self) -> None:
        self.last: float | None = None
        self.previous: float | None = None
        self.recent: deque[float] = deque(maxlen=KEPT)
        self.points: list[float] = []
        self.stride = 1
        self.total = 0.0
        self.count = 0

    def append(self, value: float) -> None:
        last = self.last
        if value != last and not (last is not None and math.isnan(value) and math.isnan(last)):
            self.previous, self.last = last, value
        self.recent.append(value)
        if not math.isfinite(value):
            return
        self.total += value
        self.count += 1
        if self.count == self.stride:
            self.points.append(self.total / self.stride)
            self.total, self.count = 0.0, 0
            if len(self.points) == 2 * POINTS:
                pairs = zip(self.points[::2], self.points[1::2])
                self.points = [(first + second) / 2 for first, second in pairs]
                self.stride *= 2


class History:
    """The rows of a run by metric. A null leaves the metric's last value standing; NaN replaces it."""

    def __init__(self) -> None:
        self._traces: dict[str, _Trace] = {}
        self.rows = 0

    def append(self, row: Mapping[str, float | None]) -> None:
        """Take one row in."""
        traces = self._traces
        for name, value in row.items():
            if value is None:
                continue
            trace = traces.get(name)
            if trace is None:
                trace = traces[name] = _Trace()
            trace.append(value)
        self.rows += 1

    def names(self) -> list[str]:
        """Metrics that have had a value."""
        return list(self._traces)

    def last(self, name: str) -> float | None:
        """Latest value, None before the first."""
        trace = self._traces.get(name)
        return None if trace is None else trace.last

    def previous(self, name: str) -> float | None:
        """The latest value that differed from the last one, None when it never changed."""
        trace = self._traces.get(name)
        return None if trace is None else trace.previous

    def delta(self, name: str) -> float | None:
        """Last minus previous distinct value."""
        last, previous = self.last(name), self.previous(name)
        return None if last is None or previous is None else last - previous

    def series(self, name: str, count: int = KEPT) -> list[float]:
        """Up to `count` (≤ KEPT) latest values, oldest first; nulls are left out."""
        trace = self._traces.get(name)
        if trace is None or count < 1:
            return []
        return list(trace.recent)[-count:]

    def trend(self, name: str, width: int) -> list[float]:
        """The whole run in at most `width` points: means of equal stretches of its finite values, oldest first."""
        trace = self._traces.get(name)
        if trace is None or width < 1:
            return []
        points = trace.points
        if trace.count:
            points = [*points, trace.total / trace.count]
        size = len(points)
        if size <= width:
            return list(points)
        edges = [index * size // width for index in range(width + 1)]
        return [sum(points[low:high]) / (high - low) for low, high in pairwise(edges)]


class EpisodeWindow:
    """Statistics of the last `size` training episodes. Std is the population's (ddof 0), as numpy's and SB3's."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.episodes = 0
        """Episodes ever added."""
        self._returns: deque[float] = deque(maxlen=size)
        self._lengths: deque[int] = deque(maxlen=size)
        self._successes: deque[bool | None] = deque(maxlen=size)
        self._regrets: deque[float | None] = deque(maxlen=size)

    def add(self, episode_return: float, length: int, success: bool | None = None, regret: float | None = None) -> None:
        """Take one finished episode in; `success` and `regret` are None where the env does not say."""
        self.episodes += 1
        self._returns.append(float(episode_return))
        self._lengths.append(int(length))
        self._successes.append(None if success is None else bool(success))
        self._regrets.append(None if regret is None else float(regret))

    def statistics(self) -> dict[str, float | None]:
        """Catalogue names and values; None before the first episode, or where no env reports success or regret."""
        mean, std = _mean_std(self._returns)
        length_mean, length_std = _mean_std(self._lengths)
        known = [success for success in self._successes if success is not None]
        return {
            "rollout/return_mean": mean,
            "rollout/return_std": std,
            "rollout/return_min": min(self._returns, default=None),
            "rollout/return_max": max(self._returns, default=None),
            "rollout/length_mean": length_mean,
            "rollout/length_std": length_std,
            "rollout/episodes": self.episodes,
            "rollout/success_rate": sum(known) / len(known) if known else None,
            "rollout/regret": _mean_std(deque(regret for regret in self._regrets if regret is not None))[0],
        }

    def state(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint; floats survive the round trip to the bit."""
        return {
            "episodes": self.episodes,
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            "successes": list(self._successes),
            "regrets": list(self._regrets),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`; a window of another size keeps the latest episodes that fit."""
        self.episodes = state["episodes"]
        self._returns = deque(state["returns"], maxlen=self.size)
        self._lengths = deque(state["lengths"], maxlen=self.size)
        self._successes = deque(state["successes"], maxlen=self.size)
        self._regrets = deque(state.get("regrets", ()), maxlen=self.size)  # checkpoints of 0.1.0 have none


def _mean_std(values: deque[float] | deque[int]) -> tuple[float | None, float | None]:
    if not values:
        return None, None
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
