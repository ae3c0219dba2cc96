"""Films that may not take long: how much a run may spend on showing itself, and which pictures fit into that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from gymnast.evaluation.film import Caption, Film

SHARE, MOST_OF_A_SHORT_RUN, A_SECOND = 0.05, 0.75, 1.0
WORTH_IT = 0.25
"""Seconds below which nothing is filmed: loading what draws and encodes takes that long."""
PROBED = 4
"""Pictures that are timed before the pace is chosen; the first is slow, because everything is opened then."""


def allowance(ran: float) -> float:
    """Seconds that a run may show itself at its end: a second or a twentieth of it, of a short run less than it took."""
    return max(SHARE * ran, min(A_SECOND, MOST_OF_A_SHORT_RUN * ran))


class Paced:
    """Leaves pictures out, evenly, so that the whole episode is shown in the time there is."""

    def __init__(self, film: Film, seconds: float, expected: float, hurry: Callable[[], bool] = lambda: False) -> None:
        """`expected` is how many pictures an episode has, roughly. Nothing more is drawn once `hurry` says so."""
        self._film, self._seconds, self._expected, self._hurry = film, seconds, max(expected, 1.0), hurry
        self._asked = -1
        self._spent = self._probed = 0.0
        self._since = 0.0
        self.every = 1
        """How many pictures one replaces."""

    @property
    def black(self) -> bool:
        """As the film says."""
        return self._film.black

    def begin(self, fps: float) -> None:
        """A new episode."""
        self._film.begin(fps)
        self._since = time.perf_counter()

    def wants(self, frame: int) -> bool:
        """Whether this picture is in the film."""
        self._asked += 1
        self._since = time.perf_counter()
        if self._asked == PROBED:
            self._choose()
        return self._asked % self.every == 0 and self._spent < self._seconds and not self._hurry()

    def _choose(self) -> None:
        """The pace that the pictures so far allow."""
        cost = self._probed / (PROBED - 1)
        left = max(self._seconds - self._spent, 0.0)
        self.every = max(1, math.ceil(self._expected * cost / max(left, cost, 1e-9)))

    def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
        """Film it; what that took includes drawing it."""
        self._film.add(picture, frame, caption)
        took = time.perf_counter() - self._since
        self._spent += took
        if self._asked > 0:
            self._probed += took
