"""One run to one tracker: connect, send what is new, go on after an outage, finish."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import cast

from gymnast.errors import UsageError
from gymnast.metrics.sinks.tracked import FOLDER, SHIPPED
from gymnast.metrics.trackers.base import About, Outcome, Tracker, TrackerError, TrackerRefusedError
from gymnast.redaction import redact, redact_tree
from gymnast.runs.lock import RunLock
from gymnast.runs.store import Run
from gymnast.service.tracking.feed import Feed, Journal

CLASSES = {"tensorboard": "TensorBoard", "wandb": "Wandb", "trackio": "Trackio"}
FIRST_PAUSE, LONGEST_PAUSE = 15.0, 600.0
"""Seconds before a tracker that could not be reached is tried again; doubled each time."""


class Sending:
    """Sends the events of a run to a tracker, each once."""

    def __init__(self, run: Run, name: str, *, pid: int = 0) -> None:
        if name not in SHIPPED:
            raise UsageError(f"'{name}' is no tracker. Known: {', '.join(SHIPPED)}.")
        SHIPPED[name].check_package()
        self.run, self.name, self.pid = run, name, pid
        self.sent = 0
        """Events, by this process."""
        self.refused = False
        self._journal = Journal(run, name)
        self._tracker: Tracker | None = None
        self._feed: Feed | None = None
        self._next_try, self._pause = 0.0, FIRST_PAUSE

    @property
    def url(self) -> str | None:
        """Where the run is shown."""
        if self._tracker is None:
            return None
        return self._tracker.url

    @property
    def connected(self) -> bool:
        """Whether the tracker has taken the run."""
        return self._tracker is not None

    def advance(self) -> int:
        """Send what is new and return how many events that were; a TrackerError if the tracker does not take it.

        After one, nothing is tried for a while.
        """
        if self.refused or time.monotonic() < self._next_try:
            return 0
        try:
            if self._tracker is None:
                self._connect()
            return self._send()
        except TrackerError as error:
            self.refused = isinstance(error, TrackerRefusedError)
            self._forget()
            raise
        except Exception as error:  # whatever a client's code raises
            self._forget()
            raise TrackerError(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}") from error

    def _forget(self) -> None:
        self._tracker = self._feed = None
        self._next_try = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _connect(self) -> None:
        module = importlib.import_module(f"gymnast.metrics.trackers.{self.name}")
        tracker = cast("Tracker", getattr(module, CLASSES[self.name])(about(self.run, self.pid)))
        arrived = tracker.open()
        if arrived is not None:
            self._journal.keep(arrived)
        videos = bool((self.run.config().get("log") or {}).get("capture_video"))
        self._tracker, self._feed = tracker, Feed(self.run, self._journal.place, videos=videos)
        self._pause = FIRST_PAUSE

    def _send(self) -> int:
        assert self._tracker is not None
        assert self._feed is not None
        before = self.sent
        for event, mark in self._feed.read():
            self._tracker.write(event, len(self._journal))
            self._journal.add(mark)
            self.sent += 1
        if self.sent > before:
            self._tracker.flush()
        return self.sent - before

    def finish(self) -> None:
        """The run has ended: send the rest, and say how it ended."""
        self._next_try = 0.0
        self.advance()
        if self._tracker is None:
            return
        status = self.run.status()
        try:
            self._tracker.close(Outcome(self.run.shown_state(), status.solved, status.stop_reason))
        finally:
            self._tracker = self._feed = None


def about(run: Run, pid: int = 0) -> About:
    """What a tracker receives about a run, without secrets."""
    created = datetime.fromisoformat(run.status().created).timestamp()
    return About(run.id, run.folder, redact_tree(run.config()), created, pid)


def only_one(run: Run, name: str) -> RunLock:
    """The right to send this run to this tracker; a UsageError if another process does it."""
    folder = run.folder / FOLDER / f"{name}.lock"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return RunLock(folder)
    except UsageError as error:
        raise UsageError(f"Another process is sending run {run.id} to {name}: wait for it.") from error


def in_words(error: BaseException) -> str:
    """Why something could not be sent, without secrets."""
    return redact(" ".join(str(error).split()))


Say = Callable[[str, str], None]
