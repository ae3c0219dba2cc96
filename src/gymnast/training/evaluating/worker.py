"""Evaluation in a process of its own, next to training: one worker, on the CPU, with one thread, on weight snapshots.

The worker is started afresh (spawn), so that it inherits neither threads nor locks. Weights travel as safetensors bytes
through a pipe; the hash of what was evaluated comes back with the result.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing import util
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as from_bytes

from gymnast.config.schema import RunConfig
from gymnast.envs.vector import VectorEnv
from gymnast.envs.worker_main import die_with_trainer, register_all, started
from gymnast.envs.worker_process import clean_start
from gymnast.envs.workers import registered
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.evaluation.evaluate import Evaluation
from gymnast.redaction import redact
from gymnast.timing import AwakeClock
from gymnast.training.evaluating.cadence import Extent
from gymnast.training.evaluating.evaluator import Evaluator, EvalWorkerError, weights_digest
from gymnast.training.machine import keep_freed_memory
from gymnast.training.trainer import policy_tensors

NICENESS = 5
"""Training goes first if there are not enough cores for both."""
HELD = (signal.SIGINT, signal.SIGTERM)
START_SECONDS = 60.0
"""What a new worker may take beyond the timeout: it imports torch, on a busy machine perhaps."""
CLOSE_SECONDS = 0.5
CANCEL_SECONDS = 0.1
"""How often a running evaluation looks whether it is still wanted."""
ALIVE, EPISODES = (
    0,
    1,
)  # entries of the shared array: the worker's time when it last did something, episodes it has played


class EvalWorker:
    """The trainer's side: at most one evaluation is under way."""

    def __init__(self, config: RunConfig) -> None:
        context = multiprocessing.get_context("spawn")
        self._timeout = config.env.worker_timeout
        self._clock = AwakeClock(most=self._timeout / 4)
        self._shared = context.RawArray("d", [0.0, 0.0])
        self._heard, self._heard_at = 0.0, self._clock() + START_SECONDS
        self._conn, theirs = context.Pipe()
        self._expected: str | None = None
        self._sender: threading.Thread | None = None
        # The kernel reports the death of the starting thread, so only a thread that lives as long as the run will do.
        lasting = threading.current_thread() is threading.main_thread()
        arguments = (theirs, self._shared, config, registered(), lasting)
        self._process = context.Process(target=serve, args=arguments, daemon=True, name="evaluation")
        with clean_start(), _signals_held():
            self._process.start()
        theirs.close()  # so that reading from a dead worker ends
        # Runs before multiprocessing waits for its children at exit, which ignore the signal it sends them.
        self._finalizer = util.Finalize(self, _end, (self._process, self._conn), exitpriority=100)

    @property
    def pid(self) -> int | None:
        """The id of the worker's process."""
        return self._process.pid

    @property
    def episodes(self) -> int:
        """Episodes played so far in the evaluation under way."""
        return int(self._shared[EPISODES])

    def submit(self, weights: bytes, turn: int, extent: Extent | None = None) -> None:
        """Begin evaluation number `turn` of a snapshot (safetensors); returns at once."""
        assert self._expected is None, "an evaluation is under way"
        self._expected = weights_digest(from_bytes(weights))
        self._shared[EPISODES] = 0.0
        self._heard_at = max(self._heard_at, self._clock())
        # A worker that is still starting does not read yet, and a pipe holds less than the weights.
        self._sender = threading.Thread(target=self._send, args=((turn, extent, weights),), daemon=True, name="weights")
        self._sender.start()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a dead worker is noticed by `poll`
            self._conn.send(message)

    def poll(self, seconds: float = 0.0) -> Evaluation | None:
        """The result, as soon as it is there; waits up to `seconds` for it."""
        try:
            if not self._conn.poll(seconds):
                self._check()
                return None
            kind, value, evaluated = self._conn.recv()
        except (EOFError, OSError):
            self._process.join(1)
            raise self._dead() from None
        if kind == "raised":
            trace = value.rstrip()
            raise EvalWorkerError(f"raised {trace.splitlines()[-1]}\n\nTraceback of the worker:\n{trace}\n")
        expected, self._expected = self._expected, None
        if evaluated != expected:
            raise EvalWorkerError(f"evaluated weights with hash {evaluated} instead of {expected}.")
        assert isinstance(value, Evaluation)
        return value

    def _check(self) -> None:
        now = self._clock()
        if self._shared[ALIVE] != self._heard:
            self._heard, self._heard_at = self._shared[ALIVE], now
        silent = now - self._heard_at
        if silent > self._timeout:
            raise EvalWorkerError(f"did nothing for {silent:.0f} s and counts as hung.")

    def _dead(self) -> EvalWorkerError:
        code = self._process.exitcode
        if code is not None and code < 0:
            return EvalWorkerError(f"was killed by signal {-code} ({signal.Signals(-code).name}).")
        return EvalWorkerError(f"ended its process (exit code {code}).")

    def close(self) -> None:
        """Cancel what is under way and end the process."""
        self._finalizer()
        if self._sender is not None:
            self._sender.join(1)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """A process that starts now gets no Ctrl-C while it imports; this one gets it right afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(process: Any, conn: Connection) -> None:
    """Closing the pipe asks the worker to close its envs and leave; it is killed if it does not."""
    conn.close()
    process.join(CLOSE_SECONDS)
    process.kill()
    process.join(1)


# --- the worker's side ----------------------------------------------------------------------------------------------


def serve(conn: Connection, shared: Any, config: RunConfig, specs: bytes, die_by_signal: bool) -> None:
    """Evaluate what the trainer sends until it closes the pipe or dies."""
    # A signal to the whole process group is for the trainer, which decides what becomes of the evaluation.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)  # what envs start themselves gets them again
    started()
    die_with_trainer(die_by_signal)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)
    torch.set_num_threads(1)
    keep_freed_memory()
    with contextlib.suppress(BrokenPipeError, EOFError, ConnectionResetError):
        try:
            register_all(specs)
            _serve(conn, shared, config)
        except (BrokenPipeError, EOFError, ConnectionResetError):
            raise  # the trainer has left
        except BaseException:
            conn.send(("raised", redact(traceback.format_exc()), None))


def _serve(conn: Connection, shared: Any, config: RunConfig) -> None:
    evaluator = Evaluator(config, one_process=True)
    try:
        evaluator.prepare()
        shared[ALIVE] = time.monotonic()

        def count(episodes: int) -> None:
            shared[EPISODES] = episodes

        while True:
            turn, extent, weights = conn.recv()
            policy = evaluator.policy_of(weights)
            evaluation = evaluator(policy, turn, extent, count, watch=lambda envs: _Watched(envs, conn, shared))
            conn.send(("ok", evaluation, weights_digest(policy_tensors(policy))))
    finally:
        evaluator.close()


class _Watched(VectorWrapper):
    """Tells the trainer that the envs move on, and stops when the trainer has left."""

    def __init__(self, inner: VectorEnv, conn: Connection, shared: Any) -> None:
        super().__init__(inner)
        self._conn, self._shared, self._next_look = conn, shared, 0.0

    def send(self, actions: np.ndarray) -> None:
        """Step, show that the worker is alive, and leave when the trainer is gone."""
        self._shared[ALIVE] = now = time.monotonic()
        if now > self._next_look:
            self._next_look = now + CANCEL_SECONDS
            if self._conn.poll():  # nothing is sent during an evaluation: the pipe is closed
                raise EOFError
        self.inner.send(actions)
