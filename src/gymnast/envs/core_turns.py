"""Workers that take turns on the cores, where that was measured to help.

In a rollout every env plays the same number of steps, so training is as fast as its slowest worker. Virtual cores are not
equally fast, presumably because two share a real one: on one machine workers differed by a third for as long as they stayed
where they were, and once each core has one worker the scheduler leaves them there. Moving all of them on now and then evens
that out. Elsewhere it may cost more than it gives, so the run tries both and keeps what is faster. No bit depends on it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Literal

from gymnast.redaction import logger

TURN_SECONDS = 0.04
"""Short against a rollout, long against what a move costs."""
LEAST_WORKERS = 4
ROUND_SECONDS = 4.0
ROUNDS = 3
"""So many times without turns and with them, one after the other."""
PAUSE_SECONDS = 0.25
"""Steps are awaited for so long only while the policy learns or is evaluated, which says nothing about the workers."""
GAIN = 1.03
CROWDED = 1.25
"""Processes per core that want to run from which on another program is taken to be on the machine."""
CLAIM = "\0gymnast-core-turns"
"""A socket without a file, gone with its process: only one pool on a machine moves its workers."""
Switch = Literal["auto", "on", "off"]
log = logger("gymnast")


class Trial:
    """Steps per second without and with turns."""

    def __init__(self) -> None:
        self.helps: bool | None = None
        """None until it is known."""
        self._rates: list[float] = []
        self._seconds, self._steps = 0.0, 0
        self._heard: tuple[float, int] | None = None

    @property
    def moving(self) -> bool:
        """Whether turns are to be taken now, to measure them or because they help."""
        if self.helps is None:
            return len(self._rates) % 2 == 1
        return self.helps

    def hear(self, now: float, steps: int) -> None:
        """`steps` were done in all until `now`."""
        before, steps_before = self._heard or (now, steps)
        self._heard = now, steps
        if now - before > PAUSE_SECONDS:
            return
        self._seconds += now - before
        self._steps += steps - steps_before
        if self._seconds < ROUND_SECONDS:
            return
        self._rates.append(self._steps / self._seconds)
        self._seconds, self._steps = 0.0, 0
        if len(self._rates) == 2 * ROUNDS:
            self._conclude()

    def _conclude(self) -> None:
        without, turning = self._rates[::2], self._rates[1::2]
        gain = sum(turning) / max(sum(without), 1e-9)
        # In every round, so that one disturbed measurement does not decide.
        every_time = all(fast > slow for fast, slow in zip(turning, without, strict=True))
        self.helps = every_time and gain >= GAIN
        log.debug("workers %s turns on the cores: %+.1f %%", "take" if self.helps else "take no", 100 * (gain - 1))


class CoreTurns:
    """Moves the workers of a pool that fills the machine, one core per worker; a core that is left over is the trainer's.

    Smaller pools are left to the scheduler: it has cores to spare, and other programs may be on them.
    """

    def __init__(self, n_workers: int, switch: Switch = "auto") -> None:
        cores = []
        if hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))
        self._all, self._cores = set(cores), cores[:n_workers]
        fills = len(self._cores) >= max(LEAST_WORKERS, len(cores) - 1)
        self.possible = fills and switch != "off"
        """False if workers stay with the scheduler for good."""
        self._trial = Trial()
        if switch == "on":
            self._trial.helps = True
        self._claim: socket.socket | None = None
        self._turn, self._next = 0, 0.0

    def even_out(self, pids: Sequence[int], steps: int) -> None:
        """To be called often while workers are waited for; `steps` is how many they have done in all."""
        now, trial = time.perf_counter(), self._trial
        if trial.helps is None:
            trial.hear(now, steps)
        if now < self._next:
            return
        self._next = now + TURN_SECONDS
        if trial.moving and self._alone():
            self._turn += 1
            count = len(self._cores)
            self._place(pids, [{self._cores[(index + self._turn) % count]} for index in range(len(pids))])
        elif self._claim is not None:
            self._place(pids, [self._all] * len(pids))
            self.close()
        elif trial.helps is False:
            self.possible = False  # measured, and of no use here

    def _alone(self) -> bool:
        """Whether no other pool moves its workers and the machine has no more to do than this run gives it."""
        if os.getloadavg()[0] > CROWDED * len(self._all):
            return False
        if self._claim is None:
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(CLAIM)
            except OSError:
                claim.close()
                return False
            self._claim = claim
        return True

    def _place(self, pids: Sequence[int], places: Sequence[set[int]]) -> None:
        for pid, place in zip(pids, places, strict=True):
            try:
                os.sched_setaffinity(pid, place)
            except ProcessLookupError:
                continue  # it has just died, which is noticed elsewhere
            except OSError:  # not allowed here: slower, but nothing is wrong
                self.possible = False
                return

    def close(self) -> None:
        """Let another pool move its workers."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None


__all__ = ["CoreTurns", "Switch", "Trial"]
