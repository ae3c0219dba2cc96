"""Ctrl-C and SIGTERM: the first asks the loop to stop at the next iteration boundary, the second leaves at once."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Any


class StopRequest:
    """Context manager that turns signals into a request; restores the old handlers on exit."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._old: dict[int, Any] = {}

    @property
    def pending(self) -> bool:
        """Whether a stop was asked for."""
        return self.name is not None

    def __enter__(self) -> StopRequest:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._handle)
        except ValueError:
            pass  # not the main thread: the host program keeps its own signal handling
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.name is not None:
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
        if number == signal.SIGINT and sys.stderr.isatty():
            # Straight to the terminal: the handler may run in the middle of any print.
            os.write(2, b"\r\nstopping after this iteration (Ctrl-C again leaves at once)\r\n")
