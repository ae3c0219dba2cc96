"""The names of the metrics of runs, which a page asks for again and again while a run trains: only what is new is read."""

from __future__ import annotations

import threading
from collections import OrderedDict

from gymnast.runs.store import Run
from gymnast.service.metrics import LiveNames

REMEMBERED = 32
"""Runs; each costs a megabyte for 100,000 rows."""


class Names:
    """Of the runs that were asked about last."""

    def __init__(self) -> None:
        self._readers: OrderedDict[str, LiveNames] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, run: Run) -> tuple[str, ...]:
        """In the order of the run's rows."""
        with self._lock:
            reader = self._readers.setdefault(run.id, LiveNames(run))
            self._readers.move_to_end(run.id)
            if len(self._readers) > REMEMBERED:
                self._readers.popitem(last=False)
            return reader.now()
