"""Stage timers that are always on (where the wall time of a run goes), and a clock for patience."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StageTimer:
    """Adds up seconds per named stage. Stages do not nest; the rest of the wall time is `other`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.started = time.perf_counter()
        self.recorder: Callable[[str, float], None] | None = None
        """Called with every stage and its seconds when it ends; for `--profile`."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the body under `name`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - begin)

    def add(self, name: str, seconds: float) -> None:
        """Count `seconds` under `name`; the form for hot loops that read the clock themselves."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        if self.recorder is not None:
            self.recorder(name, seconds)

    def wall(self) -> float:
        """Seconds since this timer was made."""
        return time.perf_counter() - self.started

    def split(self) -> dict[str, float]:
        """Share of wall time per stage, `other` included; sums to 1."""
        wall = max(self.wall(), 1e-9)
        shares = {name: seconds / wall for name, seconds in self.seconds.items()}
        shares["other"] = max(0.0, 1.0 - sum(shares.values()))
        return shares


class AwakeClock:
    """Seconds during which this process ran, for deadlines: one that was stopped (SIGSTOP, a debugger) must not blame others.

    Whoever waits looks at it again and again. The time between two looks counts up to `most` seconds: where more has passed, this
    process did not run, and those it waits for probably did not run either.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._seconds = 0.0
        self._looked = time.monotonic()

    def __call__(self) -> float:
        """Seconds that this process was awake so far."""
        now = time.monotonic()
        self._seconds += min(now - self._looked, self._most)
        self._looked = now
        return self._seconds
