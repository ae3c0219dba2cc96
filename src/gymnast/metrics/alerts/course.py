"""What rules may read of the past: a few numbers per metric, brought up to date row by row in constant time and memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gymnast.metrics.alerts.facts import Facts

RECENT = 10
"""Values in the recent mean."""
_KEEP = 0.8
"""What a smoothed value keeps of itself per new value: about five values count."""


class Course:
    """One metric from its first value to its latest; None and values that are not finite are left out."""

    __slots__ = (
        "_sum", "best_high", "best_high_step", "best_low", "best_low_step", "count", "first", "high", "last", "low", "mean",
        "recent", "smooth", "step",
    )  # fmt: skip

    def __init__(self) -> None:
        self.first = self.last = self.smooth = self.mean = math.nan
        self.low, self.high = math.inf, -math.inf
        self.best_high, self.best_low = -math.inf, math.inf
        """Highest and lowest smoothed value."""
        self.best_high_step = self.best_low_step = self.step = 0
        self.count = 0
        self.recent: deque[float] = deque(maxlen=RECENT)
        self._sum = 0.0

    def append(self, value: float, step: int) -> None:
        """Take the value of one row in."""
        count = self.count = self.count + 1
        self.last, self.step = value, step
        self.recent.append(value)
        self._sum += value
        self.mean = self._sum / count
        if count == 1:
            self.first = self.smooth = value
        else:
            # The first values are averaged plainly, so that the very first one does not weigh on all others.
            keep = min(_KEEP, 1.0 - 1.0 / count)
            self.smooth = keep * self.smooth + (1.0 - keep) * value
        if value < self.low:  # noqa: PLR1730 - twice as fast as min(), for every metric of every row
            self.low = value
        if value > self.high:  # noqa: PLR1730
            self.high = value
        if self.smooth > self.best_high:
            self.best_high, self.best_high_step = self.smooth, step
        if self.smooth < self.best_low:
            self.best_low, self.best_low_step = self.smooth, step

    def recent_mean(self) -> float:
        """Mean of the last values."""
        return sum(self.recent) / len(self.recent)

    def full(self) -> bool:
        """Whether there have been enough values for a recent mean that one of them cannot decide."""
        return self.count >= RECENT


@dataclass
class Now:
    """What a rule may read at one row."""

    facts: Facts
    courses: dict[str, Course]
    row: Mapping[str, Any]
    step: int
    progress: float
    rows: int

    def __getitem__(self, name: str) -> Course:
        """The course of a metric that has been logged; rules are called only when theirs have."""
        return self.courses[name]

    def get(self, name: str) -> Course | None:
        """The course of a metric that may not be logged."""
        return self.courses.get(name)

    def score(self) -> float | None:
        """How good the policy is by its latest evaluation, else by its training episodes: random is 0, solved is 1."""
        for name in ("eval/exact_return", "eval/return_mean", "rollout/return_mean"):
            course = self.courses.get(name)
            if course is not None:
                return self.facts.share_of_way(course.last)
        return None

    def learned(self) -> bool:
        """Whether the policy is more than half of the way to the threshold; False if that is not known."""
        score = self.score()
        return score is not None and score > 0.5

    def solved(self) -> bool:
        """Whether the latest score reaches the threshold."""
        score = self.score()
        return score is not None and score >= 1.0


def take(courses: dict[str, Course], row: Mapping[str, Any], names: Iterable[str], step: int) -> None:
    """Bring the courses up to date by one row."""
    for name in names:
        value = row.get(name)
        if value is None or not math.isfinite(value):
            continue
        course = courses.get(name)
        if course is None:
            course = courses[name] = Course()
        course.append(value, step)
