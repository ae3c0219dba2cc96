"""What envs and other parts say by `logging` while a run trains goes to its log and its terminal, like every other warning."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gymnast.redaction import logger as named_logger
from gymnast.redaction import redact
from gymnast.training.keeping.report import Reporter

_trainers: set[int] = set()
"""Threads that train now."""


class _ToReporter(logging.Handler):
    def __init__(self, reporter: Reporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter, self._thread = reporter, threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        """What another training in this process says is not ours."""
        if record.thread != self._thread and record.thread in _trainers:
            return False
        return bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        """Once to the log and once to whoever looks: the terminal, or the error stream of a program without one."""
        text = self.format(record).removeprefix("warning: ")
        self._reporter.warn(text)
        if self._reporter.console is None:
            print(redact(text), file=sys.stderr)


@contextmanager
def reported(reporter: Reporter) -> Iterator[None]:
    """Warnings of the package's loggers reach the reporter meanwhile."""
    logger, handler = named_logger("gymnast"), _ToReporter(reporter)
    logger.addHandler(handler)
    _trainers.add(thread := threading.get_ident())
    try:
        yield
    finally:
        _trainers.discard(thread)
        logger.removeHandler(handler)
