"""Ctrl-C, SIGTERM and a lost terminal (SIGHUP).

The first asks the loop to stop at the next iteration boundary, the second leaves at once.

An iteration that is too long for the grace period is left in the middle: a timer raises KeyboardInterrupt, and the loop
writes the last boundary, which it keeps in memory for that case.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Any


class StopRequest:
    """Context manager that turns signals into a request; restores the old handlers on exit."""

    def __init__(self, grace: float = 10.0) -> None:
        self.name: str | None = None
        self.keeps_boundary = False
        """Whether leaving in the middle of an iteration loses no more than that iteration."""
        self._patience = grace / 2  # the other half is for writing
        self._old: dict[int, Any] = {}

    @property
    def pending(self) -> bool:
        """Whether a stop was asked for."""
        return self.name is not None

    def __enter__(self) -> StopRequest:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            numbers.append(signal.SIGHUP)
        if hasattr(signal, "SIGALRM"):
            numbers.append(signal.SIGALRM)
        try:
            for number in numbers:
                self._old[number] = signal.signal(number, self._handle)
        except ValueError:
            pass  # not the main thread: the host program keeps its own signal handling
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.disarm()
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def disarm(self) -> None:
        """No interrupt any more: what follows must be finished."""
        if self._old and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.name is not None:
            raise KeyboardInterrupt
        if number == getattr(signal, "SIGALRM", None):
            return  # not ours: this is no request to stop
        self.name = signal.Signals(number).name
        if self.keeps_boundary and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, self._patience)
        if number == signal.SIGINT and sys.stderr.isatty():
            # Straight to the terminal: the handler may run in the middle of any print.
            os.write(2, b"\r\nstopping after this iteration (Ctrl-C again leaves at once)\r\n")
