"""TensorBoard, W&B and Trackio: a process of its own reads the run's folder and sends what is new.

Training does nothing for a tracker but write its own metrics file, and the few histograms that are not in it. It imports no
tracker, waits for none and cannot be ended by one. The folder is the spool: what could not be sent is still there, and
`gymnast sync RUN` sends it with the same code. The process sees the end of the training as the end of its standard input, so
it finishes the tracker's run however the training ended, a kill included.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from gymnast.config.schema import RunConfig
from gymnast.errors import MissingPackageError
from gymnast.metrics.histogram import Histogram
from gymnast.metrics.sinks.base import Row, Sink

SENDER = "gymnast.service.tracking.sender"
FOLDER = "trackers"
"""In the run's folder: what was sent, what could not be, and what trackers have printed."""
HISTOGRAMS = "histograms.jsonl"
MAX_SPOOL_BYTES = 64 << 20
PATIENCE = 5.0
"""Seconds that the end of a run waits for a tracker that can be reached; after that it goes on by itself."""


class TrackedSink(Sink):
    """Starts the process with the first row, and reads its reports."""

    name: ClassVar[str]
    title: ClassVar[str]
    module: ClassVar[str]
    """What must be installed."""
    wants_histograms = reads_folder = True

    def __init__(self, run_folder: Path, config: RunConfig) -> None:
        super().__init__(run_folder, config)
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._warned = False
        self._waits = True
        """Whether waiting at the end is of use: nothing has said so far that the tracker is out of reach."""

    @classmethod
    def check_package(cls) -> None:
        """A MissingPackageError if the tracker is not installed; nothing is imported."""
        if importlib.util.find_spec(cls.module) is None:
            raise MissingPackageError(f"The sink '{cls.name}'", package=f"gymnast[{cls.name}]")

    def write(self, row: Row) -> None:
        """The row is in the run's folder already; only the process may have to be started."""
        if self._process is None:
            self._start()
        self._hear()

    def _start(self) -> None:
        folder = self.run_folder / FOLDER
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", SENDER, str(self.run_folder.resolve()), self.name]
        with (folder / f"{self.name}.log").open("ab") as log:
            # A session of its own: Ctrl-C in the terminal is for the training, whose end this process waits for.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def _hear(self) -> None:
        """Take in what the process has said since."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            self._heard += os.read(self._process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        kind, text = message.get("kind"), str(message.get("text", ""))
        if kind == "url":
            self.say(f"{self.title}: {text}")
        elif kind == "connected":
            self._waits = True
        elif kind == "trouble":
            self._waits = False
            self._warn_once(
                f"{self.title} did not accept this run's numbers ({text}). Training goes on and keeps them in the run's folder; "
                f"send them later with: gymnast sync {self.reference}"
            )
        elif kind == "done":
            self._warned = True  # there is nothing left to warn of

    def _warn_once(self, sentence: str) -> None:
        if not self._warned:
            self._warned = True
            self.warn(sentence)

    def close(self) -> None:
        """Tell the process that the run has ended, and give a tracker that can be reached a moment to finish."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and self._waits and time.monotonic() < deadline:
            self._hear()
            time.sleep(0.01)
        self._hear()
        self._warn_once(
            f"{self.title} has not received everything yet; sending continues in the background. "
            f"If something is still missing later, send it with: gymnast sync {self.reference}"
        )


class Spool:
    """The histograms of one attempt, which the metrics file does not hold, for all trackers of a run; of bounded size."""

    def __init__(self, run_folder: Path, attempt: int, limit: int = MAX_SPOOL_BYTES) -> None:
        self._path, self._attempt, self._limit = run_folder / FOLDER / HISTOGRAMS, attempt, limit

    def add(self, step: int, found: Mapping[str, Histogram]) -> bool:
        """Append those of one env step; False if there is no room left."""
        content = {name: one.as_json() for name, one in found.items()}
        line = json.dumps({"attempt": self._attempt, "env_steps": step, "histograms": content}).encode() + b"\n"
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("ab") as file:
            if file.tell() + len(line) > self._limit:
                return False
            file.write(line)
        return True


class TensorBoardSink(TrackedSink):
    """Event files in the run's folder."""

    name, title, module = "tensorboard", "TensorBoard", "tensorboard"


class WandbSink(TrackedSink):
    """Weights & Biases."""

    name, title, module = "wandb", "W&B", "wandb"


class TrackioSink(TrackedSink):
    """Trackio, on this machine or on a Hugging Face Space."""

    name, title, module = "trackio", "Trackio", "trackio"


SHIPPED: dict[str, type[TrackedSink]] = {sink.name: sink for sink in (TensorBoardSink, WandbSink, TrackioSink)}
