"""Workers that take turns on the cores.

In a rollout every env plays the same number of steps, so training is as fast as its slowest worker. Virtual cores are not
equally fast, presumably because two share a real one: workers differed by a third for as long as they stayed where they
were, and once each core has one worker the scheduler leaves them there. Moving all of them on now and then evens that out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

TURN_SECONDS = 0.04
"""Short against a rollout, long against what a move costs."""
LEAST_WORKERS = 4


class CoreTurns:
    """Moves the workers of a pool that fills the machine, one core per worker; a core that is left over is the trainer's.

    Smaller pools are left to the scheduler: it has cores to spare, and other programs may be on them.
    """

    def __init__(self, n_workers: int) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
        self._cores = cores[:n_workers]
        self._wanted = len(self._cores) >= max(LEAST_WORKERS, len(cores) - 1)
        self._turn, self._next = 0, 0.0

    @property
    def due(self) -> bool:
        """Whether it is time to move."""
        return self._wanted and time.perf_counter() >= self._next

    def take(self, pids: Sequence[int]) -> None:
        """Move each worker one core on."""
        self._turn, self._next = self._turn + 1, time.perf_counter() + TURN_SECONDS
        for index, pid in enumerate(pids):
            try:
                os.sched_setaffinity(pid, {self._cores[(index + self._turn) % len(self._cores)]})
            except ProcessLookupError:
                continue  # it has just died, which is noticed elsewhere
            except OSError:  # not allowed here: slower, but nothing is wrong
                self._wanted = False
                return
