"""Commands that the studio has started, until they end."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.errors import UsageError
from gymnast.service.processes import Child, run_of, start

LAST_BYTES = 4000
PATIENCE = 90.0
"""Seconds until a training must have made its run; imports take a few, building many envs some more."""


@dataclass
class Job:
    """One command."""

    child: Child
    log: Path

    def last_words(self) -> str:
        """The end of what it printed."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - LAST_BYTES))
            return file.read().decode("utf-8", errors="replace").strip()
        return ""


class Jobs:
    """Starts commands and keeps what they print apart from the store. Trainings outlive the studio."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: Path | None = None
        self._jobs: list[Job] = []
        self._lock = threading.Lock()

    def start(self, arguments: Sequence[str]) -> Job:
        """Run `gymnast …`."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="gymnast-studio-"))
            log = self._folder / f"{len(self._jobs)}.log"
            job = Job(start(arguments, log=log), log)
            self._jobs.append(job)
        return job

    def train(self, arguments: Sequence[str]) -> str:
        """Start a training, and give the id of its run as soon as there is one."""
        job = self.start(["train", "--quiet", "--runs-dir", str(self._root), *arguments])
        return self._run_of(job)

    def resume(self, run_id: str, arguments: Sequence[str]) -> str:
        """Continue a run."""
        job = self.start(["resume", "--quiet", "--runs-dir", str(self._root), *arguments])
        found = self._run_of(job)
        assert found == run_id
        return found

    def _run_of(self, job: Job) -> str:
        run = run_of(job.child, self._root, patience=PATIENCE)
        if run is not None:
            return run.id
        raise UsageError(job.last_words() or "The command ended without a word.")

    def output(self, arguments: Sequence[str], *, patience: float) -> str:
        """Run a short command to its end and give what it printed; a UsageError if it failed."""
        job = self.start(arguments)
        code: Any = job.child.handle.wait(patience)
        if code != 0:
            raise UsageError(job.last_words())
        return job.log.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Forget what ended commands printed."""
        if self._folder is not None and all(job.child.exit_code() is not None for job in self._jobs):
            shutil.rmtree(self._folder, ignore_errors=True)
