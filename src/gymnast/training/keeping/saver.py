"""Checkpoints that do not hold training up: packed at the iteration boundary, written and synced by a thread of their own.

Waiting for the disk is most of the time of a save. One at a time and in order: a new one waits for the last.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from gymnast.errors import CheckpointError
from gymnast.runs import checkpoint
from gymnast.runs.bulk import BulkStore


class CheckpointSaver:
    """Writes packed checkpoints of one run in the background."""

    def __init__(self, run_folder: Path, keep: int, on_failure: Callable[[str], None], bulk: BulkStore) -> None:
        self._folder, self._keep, self._on_failure, self._bulk = run_folder, keep, on_failure, bulk
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self.failure: str | None = None
        """Why the newest save is not on disk; None when it is, or is being written."""
        self._best: checkpoint.Packed | None = None
        """The best checkpoint while it is not on disk: tried again with the next one."""
        self.best: checkpoint.Packed | None = None
        """The newest one that was the best, for a run folder that must be made again."""
        self.landed: list[int] = []
        """Steps of checkpoints that are on disk and have not been reported yet."""

    def save(
        self,
        packed: checkpoint.Packed,
        *,
        best: bool,
        metrics_file: Path,
        latest: bool = True,
        newest: bool = False,
        master: str | None = None,
    ) -> None:
        """Queue one checkpoint; the metrics of its step reach the disk before it does.

        `latest=False` is for a boundary that is not the last one to go on from, `newest` for weights beyond that one. `master`
        names the stage of a plan that ends with it.
        """
        self.wait()
        if best:
            self.best = packed
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending = self._thread.submit(self._write, packed, best, latest, newest, master, metrics_file)

    def _write(
        self, packed: checkpoint.Packed, best: bool, latest: bool, newest: bool, master: str | None, metrics_file: Path
    ) -> None:
        with metrics_file.open("rb") as file:
            os.fsync(file.fileno())
        self._bulk.sync()
        if best:
            self._best = packed
        elif self._best is not None:
            checkpoint.write(self._folder, self._best, latest=False, best=True)
            self._best = None
        checkpoint.write(self._folder, packed, latest=latest, best=best, newest=newest, master=master)
        self.landed.append(packed.step)
        self._best = None
        checkpoint.prune(self._folder, self._keep)

    def wait(self) -> None:
        """Return when everything queued is on disk. A full disk must not end a training: it is reported and it goes on."""
        pending, self._pending = self._pending, None
        if pending is not None:
            try:
                pending.result()
                self.failure = None
            except (CheckpointError, OSError) as error:
                self.failure = str(error)
                self._on_failure(self.failure)

    def close(self) -> None:
        """Finish what is queued."""
        self.wait()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
