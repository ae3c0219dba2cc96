"""A run folder that vanishes while its training goes on (deleted, moved, unmounted), or a part of it, is made again.

Files that are open keep their content; small ones are remembered. Checkpoints are written anew by the training itself.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from gymnast.errors import GymnastError
from gymnast.runs.files import write_atomic
from gymnast.runs.lock import RunLock
from gymnast.runs.store import Run

MOST_BYTES = 1_000_000
LOCK = "lock"
OPEN = ("metrics.jsonl", "log.txt", "trace.jsonl", LOCK)
"""Files of a run that its training holds open, or writes all the time."""


class Appended(Protocol):
    """A file that is open for reading and appending."""

    path: Path

    def fileno(self) -> int:
        """The descriptor of the open file."""
        ...

    def reopen(self) -> None:
        """Go on with the file that `path` names now."""
        ...


class Rescue:
    """What must be known of a run's folder to make it again."""

    def __init__(self, run: Run, files: Sequence[Appended]) -> None:
        """`files` are those that the training appends to. The run is locked by this process."""
        self._run, self._status, self._open = run, run.status(), files
        self._home = run.folder.absolute()  # the working directory may vanish with it
        self._small = {
            path.name: path.read_bytes()
            for path in run.folder.iterdir()
            if path.is_file() and path.name not in OPEN and path.stat().st_size <= MOST_BYTES
        }
        self._locked = _identity(run.folder / LOCK)
        self._lock: RunLock | None = None
        """A lock taken here, because the first one went with its file."""

    def is_whole(self) -> bool:
        """Whether the folder and what no training does without are in their places."""
        there = self._run.exists() and self._run.checkpoints.is_dir()
        return there and self._is_locked() and all(map(_is_in_place, self._open))

    def _is_locked(self) -> bool:
        """Whether the file that this process locked is still the one that others would try to lock."""
        return _identity(self._run.folder / LOCK) == self._locked

    def rebuild(self) -> None:
        """Put back what is missing: folders, small files, what was open, the lock; a GymnastError if that cannot be."""
        run = self._run
        try:
            for folder in (run.folder, run.checkpoints, run.videos):
                folder.mkdir(parents=True, exist_ok=True)
            for name, content in self._small.items():
                if not (run.folder / name).exists():
                    write_atomic(run.folder / name, content)
            for file in self._open:
                _put_back(file)
            run.update(**dataclasses.asdict(self._status))
            run.point_last()
            if not self._is_locked():
                self._lock_again()
        except (OSError, GymnastError) as error:
            raise GymnastError(
                f"The folder of run {run.id} has vanished ('{self._home}') and cannot be made again: "
                f"{str(error).rstrip('.')}. Training stops: nothing that it learns could be saved."
            ) from error

    def _lock_again(self) -> None:
        lock, self._lock = self._lock, self._run.lock()
        self._locked = _identity(self._run.folder / LOCK)
        if lock is not None:
            lock.release()

    def close(self) -> None:
        """Give the lock free, where the folder was made again."""
        if self._lock is not None:
            self._lock.release()


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of a file, which no other file has while this one is open; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _is_in_place(file: Appended) -> bool:
    """Whether an open file is the one that its path names."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), file.path.stat())
    except OSError:
        return False


def _put_back(file: Appended) -> None:
    """Give the content of an open file its name again."""
    if _is_in_place(file):
        return
    with file.path.open("wb") as copy, os.fdopen(os.dup(file.fileno()), "rb") as content:
        content.seek(0)
        shutil.copyfileobj(content, copy)
    file.reopen()
