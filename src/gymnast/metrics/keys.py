"""Keys pressed while a display runs: read without waiting, and the terminal is left as it was found."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

try:
    import select
    import termios
except ImportError:  # not on Windows
    termios = None  # type: ignore[assignment]


class Keys:
    """Context manager under which `pressed` gives the keys since the last call.

    Where standard input is no terminal, or another program has the terminal (a shell's background job), it does
    nothing: touching a terminal from the background would stop the training.
    """

    def __init__(self) -> None:
        self._fd = -1
        self._before: Any = None

    @property
    def listening(self) -> bool:
        """Whether keys are read."""
        return self._before is not None

    def __enter__(self) -> Keys:
        # Outside the main thread a signal may end the process without a word to this one.
        if termios is None or threading.current_thread() is not threading.main_thread():
            return self
        with suppress(OSError, ValueError, AttributeError, termios.error):
            fd = sys.stdin.fileno()
            if os.isatty(fd) and _in_foreground(fd):
                before = termios.tcgetattr(fd)
                keys = termios.tcgetattr(fd)
                keys[3] &= ~(termios.ICANON | termios.ECHO)  # each key at once, unseen; Ctrl-C is a signal as before
                keys[6][termios.VMIN], keys[6][termios.VTIME] = 1, 0
                self._fd, self._before = fd, before
                atexit.register(self._restore)
                termios.tcsetattr(fd, termios.TCSADRAIN, keys)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._restore()
        atexit.unregister(self._restore)

    def pressed(self) -> str:
        """Keys since the last call, without waiting."""
        if self._before is None:
            return ""
        with suppress(OSError, ValueError):
            if _in_foreground(self._fd) and select.select([self._fd], [], [], 0)[0]:
                data = os.read(self._fd, 64)
                if not data:  # the terminal is gone: it would stay readable forever
                    self._before = None
                return data.decode("ascii", "ignore")
        return ""

    def _restore(self) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        with suppress(OSError, termios.error):
            if _in_foreground(self._fd):  # else the shell has set it for itself
                termios.tcsetattr(self._fd, termios.TCSADRAIN, before)


def _in_foreground(fd: int) -> bool:
    return os.tcgetpgrp(fd) == os.getpgrp()
