"""Trainings and other commands as processes of their own: start one, find its run, stop it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gymnast.errors import UsageError
from gymnast.runs import index
from gymnast.runs.process import machine, process_alive, process_start
from gymnast.runs.status import Status
from gymnast.runs.store import Run, runs_root
from gymnast.service.plain import NOT_JSON

LOOK_EVERY = 0.05
"""Seconds between two looks at a process or a folder."""
PATIENCE = 60.0
"""Seconds that a training gets to write its checkpoint; one of a large replay takes a while."""


@dataclass(frozen=True)
class Child:
    """A `gymnast` command that this process has started. It goes on when this process ends."""

    pid: int
    began: str | None
    """When it began, as the system says it: pids are given out again."""
    command: tuple[str, ...]
    """What comes after `gymnast`."""
    log: str | None
    """The file that takes what it prints."""
    handle: subprocess.Popen[bytes] = field(repr=False, compare=False, metadata=NOT_JSON)
    """Its end is read from here, which also takes it out of the system's table."""

    def exit_code(self) -> int | None:
        """None while it runs; a negative number is the signal that ended it."""
        return self.handle.poll()


def start(
    arguments: Sequence[str],
    *,
    log: Path | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start `python -m gymnast …` with this list of arguments; no shell reads them.

    What it prints goes to `log`, else nowhere. A Ctrl-C in the terminal of this process does not reach it: `stop` does.
    """
    command = [sys.executable, "-m", "gymnast", *arguments]
    try:
        with contextlib.ExitStack() as stack:
            output: int | IO[bytes] = subprocess.DEVNULL
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(log.open("ab"))
            handle = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=None if environment is None else {**os.environ, **environment},
                start_new_session=True,
            )
    except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"'gymnast {' '.join(arguments)}' cannot be started: {reason}.") from error
    return Child(handle.pid, process_start(handle.pid), tuple(arguments), None if log is None else str(log), handle)


def run_of(child: Child, root: Path | None = None, *, patience: float = PATIENCE) -> Run | None:
    """The run that a child trains. Waits until it is made; None when the child ends without one, or takes too long."""
    root, deadline = runs_root(root), time.monotonic() + patience
    while True:
        ended = child.exit_code() is not None  # asked first: a run made just before the end is found below
        for row in index.list_runs(root, notice=lambda _: None):
            run = Run(root / row.id)
            if _is_owned_by(run.status(), child):
                return run
        if ended or time.monotonic() > deadline:
            return None
        time.sleep(LOOK_EVERY)


def _is_owned_by(status: Status, child: Child) -> bool:
    return status.pid == child.pid and status.machine == machine() and status.process_start == child.began


def is_alive(run: Run) -> bool:
    """Whether a process trains in this run now, here or, by its heartbeat, on another machine."""
    return run.is_alive()


def stop(run: Run, *, patience: float = PATIENCE) -> Status:
    """Ask the process that trains a run to write a checkpoint and end; gives the status it leaves.

    A run that nobody trains is left as it is. A second call while the first one waits ends the process at once, as a
    second Ctrl-C does.
    """
    status = run.status()
    if not run.is_alive():
        return status
    if status.machine != machine():
        raise UsageError(f"Run {run.id} is being trained on '{status.host}' and can only be stopped there.")
    # Between the look and the signal the process could end and its pid be given out again: so late as possible.
    if process_alive(status.pid, status.process_start):
        try:
            os.kill(status.pid, signal.SIGTERM)
        except ProcessLookupError:
            return run.status()
        except PermissionError:
            raise UsageError(
                f"Run {run.id} is being trained by process {status.pid} of another user, who alone can stop it."
            ) from None
    deadline = time.monotonic() + patience
    while process_alive(status.pid, status.process_start):
        if time.monotonic() > deadline:
            raise UsageError(
                f"Run {run.id} was asked to stop {patience:.0f} s ago and still writes (process {status.pid}). "
                "Asking again ends it at once, with its last checkpoint."
            )
        time.sleep(LOOK_EVERY)
    return run.status()
