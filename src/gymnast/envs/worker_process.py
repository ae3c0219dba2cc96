"""One worker process of the pool as the trainer sees it: how it is started, asked, waited for and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any

from gymnast.envs import worker_main
from gymnast.envs.first_look import warn
from gymnast.envs.worker_main import COMMAND, REQUEST, SharedRows
from gymnast.timing import AwakeClock

ALIVE_CHECK_SECONDS = 0.1
CLOSE_SECONDS = 0.5
awake = AwakeClock(most=2 * ALIVE_CHECK_SECONDS)
"""The clock of all deadlines of workers; whoever waits for one looks at it every `ALIVE_CHECK_SECONDS`."""


class WorkerError(Exception):
    """A worker raised, died or hung; the pool replaces it or turns this into an EnvError."""

    def __init__(self, worker: Worker, what: str, trace: str = "", *, refused: bool = False) -> None:
        super().__init__(what)
        self.worker, self.what, self.refused = worker, what, refused
        self.trace = f"\n\nTraceback of the worker:\n{trace.rstrip()}" if trace else ""


class Worker:
    """One process and the ways to talk to it."""

    def __init__(self, context: Any, index: int, envs: slice, payload: bytes, timeout: float) -> None:
        self.index, self.envs, self.timeout = index, envs, timeout
        self.go, self.done = context.Semaphore(0), context.Semaphore(0)
        self.conn, theirs = context.Pipe()
        # The kernel reports the death of the starting thread, so only a thread that lives as long as the run will do.
        lasting = context.get_start_method() == "forkserver" or threading.current_thread() is threading.main_thread()
        channel = worker_main.Channel(theirs, self.go, self.done, index, envs)
        arguments = (channel, payload, lasting)
        self.process = context.Process(target=worker_main.run, args=arguments, daemon=True, name=f"env worker {index}")
        with clean_start():
            self.process.start()
        theirs.close()  # so that reading from a dead worker ends

    def wait_done(self, deadline: float) -> None:
        """Block until the step is finished."""
        while not self.done.acquire(True, ALIVE_CHECK_SECONDS):
            self.check(deadline)

    def receive(self, deadline: float) -> Any:
        """Block until the worker has sent something."""
        try:
            while True:
                while not self.conn.poll(ALIVE_CHECK_SECONDS):
                    self.check(deadline)
                received = self.conn.recv()
                if not _is_notice(received):
                    return received
                warn(*received[1])
        except (EOFError, OSError):
            self.process.join(1)
            raise self._dead() from None

    def reply(self, patience: float = 1) -> Any:
        """The result of a command."""
        return self.message(awake() + patience * self.timeout)[1]

    def message(self, deadline: float) -> tuple[Any, Any]:
        """What the worker sends next and about what; raises where it failed."""
        about, value = self.receive(deadline)
        if about == "refused":
            raise WorkerError(self, value, refused=True)
        if about == "raised":
            raise WorkerError(self, f"raised {_exception(value)}", value)
        return about, value

    def check(self, deadline: float) -> None:
        """Raise if the process has died or is late; deadlines are on the clock `awake`."""
        if not self.process.is_alive():
            raise self._dead()
        if awake() > deadline:
            raise WorkerError(self, f"gave no answer within {self.timeout:g} s and counts as hung")

    def _dead(self) -> WorkerError:
        code = self.process.exitcode
        if code is not None and code < 0:
            return WorkerError(self, f"was killed by signal {-code} ({signal.Signals(-code).name})")
        return WorkerError(self, f"ended its process (exit code {code})")

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join(1)
        self.conn.close()


class Resources:
    """What must not outlive the pool; closed by the pool, the garbage collector or the end of the program."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.shared: SharedRows | None = None
        self.closed = False

    def close(self) -> None:
        """Let the workers close their envs, then end whoever is left. Safe to call twice."""
        if self.closed:
            return
        self.closed = True
        for worker in self.workers:
            if self.shared is not None:
                self.shared.control[worker.index, REQUEST] = COMMAND
            with contextlib.suppress(OSError):
                worker.conn.send(("close", None))
            worker.go.release()
        deadline = time.monotonic() + CLOSE_SECONDS
        for worker in self.workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.kill()
        self.workers.clear()
        if self.shared is not None:
            self.shared.release()
            self.shared.unlink()


@contextlib.contextmanager
def clean_start() -> Iterator[None]:
    """Keep a new process from running the user's script again, which may import torch or start another pool, and from taking
    a `random.py` of the current folder for Python's own."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    asked = worker_main.SAFE_PATH in os.environ
    os.environ.setdefault(worker_main.SAFE_PATH, worker_main.WHILE_STARTING)
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if not asked:
            del os.environ[worker_main.SAFE_PATH]


@contextlib.contextmanager
def deaf_to_stop_signals() -> Iterator[None]:
    """Processes started meanwhile get no SIGTERM and SIGHUP, which come to the whole process group (by `timeout`, a service
    manager, a lost terminal) and are for the trainer alone."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
    """Start the process that frees shared memory when this one is killed. It lets SIGTERM through to whoever starts it, so it
    must run before others are started deaf."""
    if sys.platform != "win32":
        with clean_start(), deaf_to_stop_signals():
            resource_tracker.ensure_running()


def _is_notice(received: Any) -> bool:
    return isinstance(received, tuple) and received[0] == worker_main.NOTICE


def _exception(trace: str) -> str:
    """The exception of a traceback in one line: all that follows the last quoted line of code."""
    lines = trace.strip().splitlines()
    quoted = [number for number, line in enumerate(lines) if line.startswith(" ")]
    if quoted:
        lines = lines[quoted[-1] + 1 :]
    return " ".join(lines)
