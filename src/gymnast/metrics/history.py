"""What has been logged so far: the latest values, their course, and the running window of episodes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

TERMS = "rollout/reward_terms/"
"""How the names of metrics begin that say what a term of the reward added up to."""
STAGE = "train/stage"
OF_THE_TASK = ("rollout/", "eval/")
"""How the names of metrics begin whose past ends with a stage of a plan."""
POINTS = 64
"""A whole-run trend has at most twice this many points."""
BY_TASK = ("rollout/return_mean", "rollout/length_mean", "rollout/success_rate", "rollout/episodes")
"""What is logged of every task by itself, where episodes are of several: `rollout/return_mean/hard`."""


class Point(NamedTuple):
    """The mean of one stretch of a metric's course, and the vec step at which the stretch ended."""

    vec_steps: float
    value: float


class _Trace:
    """One metric: its last value exactly, the whole run as means of equal stretches (bounded memory)."""

    __slots__ = ("count", "ends", "high", "high_at", "last", "points", "previous", "stride", "total")

    def __init__(self) -> None:
        self.last: float | None = None
        self.previous: float | None = None
        self.high: float | None = None
        self.high_at = 0.0
        self.points: list[float] = []
        self.ends: list[float] = []
        """Where each point's stretch ended."""
        self.stride = 1
        self.total = 0.0
        self.count = 0

    def append(self, value: float, at: float) -> None:
        last = self.last
        if value != last and not (last is not None and math.isnan(value) and math.isnan(last)):
            self.previous, self.last = last, value
        if not math.isfinite(value):
            return
        if self.high is None or value > self.high:
            self.high, self.high_at = value, at
        self.total += value
        self.count += 1
        if self.count == self.stride:
            self.points.append(self.total / self.stride)
            self.ends.append(at)
            self.total, self.count = 0.0, 0
            if len(self.points) == 2 * POINTS:
                pairs = zip(self.points[::2], self.points[1::2])
                self.points = [(first + second) / 2 for first, second in pairs]
                self.ends = self.ends[1::2]
                self.stride *= 2


class History:
    """The rows of a run by metric. A null leaves the metric's last value standing; NaN replaces it."""

    def __init__(self) -> None:
        self._traces: dict[str, _Trace] = {}
        self._stage: float | None = None
        self.rows = 0
        self.vec_steps = 0.0
        """Of the last row; rows without steps count as one each."""

    def append(self, row: Mapping[str, float | None]) -> None:
        """Take one row in."""
        traces = self._traces
        self._enter_stage(row.get(STAGE))
        at = row.get("vec_steps")
        self.vec_steps = self.vec_steps + 1.0 if at is None else at
        for name, value in row.items():
            if value is None:
                continue
            trace = traces.get(name)
            if trace is None:
                trace = traces[name] = _Trace()
            trace.append(value, self.vec_steps)
        self.rows += 1

    def _enter_stage(self, stage: float | None) -> None:
        """Returns of another task say nothing of how this one goes."""
        if stage is None or stage == self._stage:
            return
        if self._stage is not None:
            for name in [name for name in self._traces if name.startswith(OF_THE_TASK)]:
                del self._traces[name]
        self._stage = stage

    def names(self) -> list[str]:
        """Metrics that have had a value, in the order of their first ones."""
        return list(self._traces)

    def last(self, name: str) -> float | None:
        """Latest value, None before the first."""
        trace = self._traces.get(name)
        if trace is None:
            return None
        return trace.last

    def previous(self, name: str) -> float | None:
        """The latest value that differed from the last one, None when it never changed."""
        trace = self._traces.get(name)
        if trace is None:
            return None
        return trace.previous

    def high(self, name: str) -> Point | None:
        """The highest finite value, and when it was first reached."""
        trace = self._traces.get(name)
        if trace is None or trace.high is None:
            return None
        return Point(trace.high_at, trace.high)

    def course(self, name: str) -> list[Point]:
        """The whole run as means of equal stretches, oldest first; the stretch that has not ended yet is left out."""
        trace = self._traces.get(name)
        if trace is None:
            return []
        return list(map(Point, trace.ends, trace.points))

    def ago(self, name: str, vec_steps: float) -> float | None:
        """The value so many vec steps ago (the mean of the stretch that ended then), None when there was none yet."""
        trace = self._traces.get(name)
        if trace is None:
            return None
        index = bisect_right(trace.ends, self.vec_steps - vec_steps)
        if index:
            return trace.points[index - 1]
        return None

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

    def __init__(self, size: int, terms: Sequence[str] = ()) -> None:
        """`terms` are the names of the terms of the reward."""
        self.size = size
        self.episodes = 0
        """Episodes ever added."""
        self._returns: deque[float] = deque(maxlen=size)
        self._lengths: deque[int] = deque(maxlen=size)
        self._successes: deque[bool | None] = deque(maxlen=size)
        self._regrets: deque[float | None] = deque(maxlen=size)
        self._terms: dict[str, deque[float]] = {name: deque(maxlen=size) for name in terms}
        self._tasks: dict[str, EpisodeWindow] = {}
        """A window of each task, where episodes are of several."""

    def add(
        self,
        episode_return: float,
        length: int,
        success: bool | None = None,
        regret: float | None = None,
        terms: Mapping[str, float] | None = None,
        task: str | None = None,
    ) -> None:
        """Take one finished episode in; `success` and `regret` are None if the env does not say.

        `terms` is what each term of the reward added up to, `task` whose episode it was.
        """
        if task is not None:
            own = self._tasks.setdefault(task, EpisodeWindow(self.size))
            own.add(episode_return, length, success, regret)
        self.episodes += 1
        self._returns.append(float(episode_return))
        self._lengths.append(int(length))
        self._successes.append(None if success is None else bool(success))
        self._regrets.append(None if regret is None else float(regret))
        # Terms that nobody has declared are an env's own information, under a name that it is free to use.
        for name, values in self._terms.items():
            if terms is not None and name in terms:
                values.append(float(terms[name]))

    def statistics(self) -> dict[str, float | None]:
        """Catalogue names and values; None before the first episode, or where no env reports success or regret."""
        mean, std = _mean_std(self._returns)
        length_mean, length_std = _mean_std(self._lengths)
        known = [success for success in self._successes if success is not None]
        found = {
            "rollout/return_mean": mean,
            "rollout/return_std": std,
            "rollout/return_min": min(self._returns, default=None),
            "rollout/return_max": max(self._returns, default=None),
            "rollout/length_mean": length_mean,
            "rollout/length_std": length_std,
            "rollout/episodes": self.episodes,
            "rollout/success_rate": sum(known) / len(known) if known else None,
            "rollout/regret": _mean_std(deque(regret for regret in self._regrets if regret is not None))[0],
            **{f"{TERMS}{name}": _mean_std(values)[0] for name, values in self._terms.items()},
        }
        for task, window in self._tasks.items():
            own = window.statistics()
            found |= {f"{name}/{task}": own[name] for name in BY_TASK if own[name] is not None}
        return found

    def forget(self) -> None:
        """The episodes so far say nothing of the coming ones; how many there were stays known."""
        for values in (self._returns, self._lengths, self._successes, self._regrets):
            values.clear()

    def state(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint; floats survive the round trip to the bit."""
        state = {
            "episodes": self.episodes,
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            "successes": list(self._successes),
            "regrets": list(self._regrets),
            "terms": {name: list(values) for name, values in self._terms.items()},
        }
        if self._tasks:
            state["tasks"] = {task: window.state() for task, window in self._tasks.items()}
        return state

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`; a window of another size keeps the latest episodes that fit."""
        self.episodes = int(state["episodes"])
        self._returns = deque(map(float, state["returns"]), maxlen=self.size)
        self._lengths = deque(map(int, state["lengths"]), maxlen=self.size)
        successes = (None if success is None else bool(success) for success in state["successes"])
        self._successes = deque(successes, maxlen=self.size)
        regrets = state.get("regrets", ())  # checkpoints of 0.1.0 have none
        for name, values in state.get("terms", {}).items():
            if name in self._terms:
                self._terms[name] = deque(map(float, values), maxlen=self.size)
        self._regrets = deque((None if regret is None else float(regret) for regret in regrets), maxlen=self.size)
        self._tasks = {}
        for task, saved in state.get("tasks", {}).items():
            self._tasks[task] = EpisodeWindow(self.size)
            self._tasks[task].load(saved)


def _mean_std(values: deque[float] | deque[int]) -> tuple[float | None, float | None]:
    if not values:
        return None, None
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan
    try:
        mean = math.fsum(values) / len(values)
        return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    except OverflowError:  # returns beyond 1e154: their squares overflow
        return math.nan, math.nan
