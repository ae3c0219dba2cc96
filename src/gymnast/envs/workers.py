"""Our own process pool: several envs per worker, results written straight into shared memory, one worker replaceable.

A step is one semaphore to each worker and one back; nothing is pickled unless an episode ended. Gymnasium's
AsyncVectorEnv gives a crashed worker up and hangs with a hung one; here a worker that raises, dies or hangs is replaced
or ends the run with a sentence, as the config says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing import util
from typing import Any, Literal

import cloudpickle
import gymnasium as gym
import numpy as np

from gymnast import own_code
from gymnast.amounts import count
from gymnast.envs.inprocess import IDLE, MakeEnv
from gymnast.envs.spaces import copy_rows
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.envs.worker_main import AT, COMMAND, ENDED, RAISED, REQUEST, STEP, LazyEntry, SharedRows
from gymnast.envs.worker_process import (
    Resources,
    Worker,
    WorkerError,
    awake,
    clean_start,
    deaf_to_stop_signals,
    start_tracker,
)
from gymnast.errors import EnvError
from gymnast.redaction import logger

MakeVector = Callable[[int], VectorEnv]
AroundVector = Callable[[VectorEnv], VectorEnv]
"""What runs around the envs of each worker, next to them."""
log = logger(__name__)

PRELOADED = ["gymnast.envs.worker_main", "gymnast.envs.make"]  # without torch
REPLACED = "%s\nThe worker is replaced (restart %d of %d).%s"
MEANING = (  # said once
    " Its running episodes are lost and new ones take their place, so from here on this run differs from one with the same "
    "seed that lost no worker."
)
LOAD_PATIENCE = 10  # load_state may repeat whole episodes: it may take this many times the usual timeout


class WorkerPool(VectorEnv):
    """N envs over several worker processes, equal to the bit to the same envs in one process."""

    BY_LANES = False
    """Whether `make` gives vector envs, of which a worker has two."""

    def __init__(
        self,
        make: MakeEnv | MakeVector,
        n_envs: int,
        *,
        n_workers: int,
        start_method: str = "forkserver",
        timeout: float = 60.0,
        on_failure: Literal["restart", "abort"] = "restart",
        max_restarts: int = 10,
        action_mask: bool = True,
        around: AroundVector | None = None,
    ) -> None:
        self.n_envs, self.n_workers = n_envs, min(n_workers, n_envs)
        self.timeout, self.on_failure, self.max_restarts = timeout, on_failure, max_restarts
        self._context = multiprocessing.get_context(start_method)
        start_tracker()
        if start_method == "forkserver":
            start_server(self._context)
        self._payload = _payload(make, self.BY_LANES, action_mask, around)
        self._seeds: list[int | None] = [None] * n_envs  # of the last seeded reset, a restart's included
        self._original_seeds = list(self._seeds)
        self._returns, self._lengths = np.zeros(n_envs), np.zeros(n_envs, np.int64)
        self._restarts = 0
        self._traces: set[str] = set()
        """Tracebacks that were shown: an env that always raises shows its own once."""
        self._interrupted: set[int] = set()  # workers replaced since the last step, reported by the next one
        self._step_in_flight = False
        self._stepping: list[Worker] = []
        self._under_way: dict[
            int, float
        ] = {}  # lanes whose step has not ended, in the order of sending, and their deadlines
        self._next_look = 0.0
        self._resources = Resources()
        # Runs before multiprocessing waits for its children at exit, which ignore the signal it sends them.
        util.Finalize(self, self._resources.close, exitpriority=100)
        bounds = np.linspace(0, n_envs, self.n_workers + 1).astype(int).tolist()
        try:
            for index in range(self.n_workers):
                self._workers.append(self._start(index, slice(bounds[index], bounds[index + 1])))
            self._description, *_ = [worker.reply() for worker in self._workers]
            self._resources.shared = SharedRows(self._description, n_envs, self.n_workers)
            for worker in self._workers:
                self._attach(worker)
        except WorkerError as failure:
            self.close()
            if failure.refused:
                raise EnvError(failure.what) from None
            raise EnvError(f"{_name(failure.worker)} {failure.what} while making its envs.{failure.trace}") from None
        except BaseException:
            self.close()
            raise
        self.observation_space = self._description["observation_space"]
        self.action_space = self._description["action_space"]
        self.has_action_mask = self._description["has_action_mask"]
        self.changes_reward = self._description["changes_reward"]
        self.exact_resume = self._description["exact_resume"]

    @property
    def _workers(self) -> list[Worker]:
        return self._resources.workers

    @property
    def _shared(self) -> SharedRows:
        if self._resources.closed or self._resources.shared is None:
            raise EnvError("The worker pool is closed.")
        if self._step_in_flight:
            raise EnvError("The last step of the worker pool was interrupted half-way: make a new pool.")
        return self._resources.shared

    def _start(self, index: int, envs: slice) -> Worker:
        return Worker(self._context, index, envs, self._payload, self.timeout)

    def _attach(self, worker: Worker) -> None:
        worker.conn.send(("attach", (self._description, self.n_envs, self.n_workers, self._shared.name)))
        worker.reply()

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed and reset every slot."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        self._seeds = [int(seed) for seed in seeds]
        self._original_seeds = list(self._seeds)
        self._command("reset", {worker.index: (self._seeds[worker.envs],) for worker in self._workers})
        self._interrupted.clear()  # a worker replaced meanwhile has been reset as well, with the seeds of its restart
        self._returns[:], self._lengths[:] = 0.0, 0
        self._copy_obs(row)

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step all workers at once; a worker that fails is replaced and its episodes are reported as interrupted."""
        self.send(actions)
        return self.recv(row)

    def send(self, actions: np.ndarray) -> None:
        """Let all workers step."""
        shared = self._shared
        shared.actions[...] = actions
        shared.control[:, REQUEST] = STEP
        self._step_in_flight = True
        self._stepping = [worker for worker in self._workers if worker.index not in self._interrupted]
        for worker in self._stepping:
            worker.go.release()

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Wait for all workers, then replace those that failed."""
        shared, stepping = self._resources.shared, self._stepping
        assert shared is not None
        deadline = awake() + self.timeout
        failures: list[WorkerError] = []
        ended: list[EndedEpisode] = []
        for worker in stepping:
            try:
                worker.wait_done(deadline)
                if shared.control[worker.index, ENDED] == RAISED:
                    worker.reply()
                elif shared.control[worker.index, ENDED]:
                    ended += worker.receive(deadline)
            except WorkerError as error:
                failures.append(error)
        self._step_in_flight, self._stepping = False, []
        for failure in failures:
            self._replace(failure)
        if self._interrupted:
            ended = sorted(ended + self._interrupted_episodes(), key=lambda episode: episode.index)
        if shared.row.own_reward is None:
            self._returns += shared.row.reward
        else:
            self._returns += shared.row.own_reward
            if row.own_reward is not None:
                row.own_reward[...] = shared.row.own_reward
        self._lengths += 1
        for episode in ended:
            self._returns[episode.index], self._lengths[episode.index] = 0.0, 0
        self._copy_obs(row)
        row.reward[...] = shared.row.reward
        row.terminated[...] = shared.row.terminated
        row.truncated[...] = shared.row.truncated
        return ended or NONE_ENDED

    def _copy_obs(self, row: StepRow) -> None:
        shared = self._shared.row
        copy_rows(row.obs, shared.obs)
        if row.mask is not None:
            row.mask[...] = shared.mask

    def _interrupted_episodes(self) -> list[EndedEpisode]:
        """The lost episodes of replaced workers; their rows become truncations without reward."""
        lost = []
        for worker in (self._workers[index] for index in self._interrupted):
            rows = self._shared.part(worker.envs)
            rows.reward[:], rows.terminated[:], rows.truncated[:] = 0.0, False, True
            if rows.own_reward is not None:
                rows.own_reward[:] = 0.0
            for i in range(worker.envs.start, worker.envs.stop):
                # Counted up to the step before: what the failed one would have given is unknown.
                counted = float(self._returns[i]), int(self._lengths[i])
                lost.append(EndedEpisode(i, None, *counted, False, {"worker_restarted": True}))
        self._interrupted.clear()
        return lost

    def save_state(self) -> dict[str, Any]:
        """One entry per slot, the same tree as `InProcessVector` gives, so that the number of workers may change."""
        parts = self._command("save_state", dict.fromkeys(range(self.n_workers), ()))
        keys = [key for key, value in parts[0].items() if isinstance(value, list)]
        return {"method": self.exact_resume, **{key: [entry for part in parts for entry in part[key]] for key in keys}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore every slot by the way it was saved."""
        if len(state["envs"]) != self.n_envs:
            raise EnvError(f"The saved state is of {len(state['envs'])} envs, this run has {self.n_envs}.")
        parts = {
            worker.index: ({key: value[worker.envs] if key != "method" else value for key, value in state.items()},)
            for worker in self._workers
        }
        self._command("load_state", parts, patience=LOAD_PATIENCE)
        self._interrupted.clear()
        self._seeds, self._original_seeds = list(state["seeds"]), list(state["seeds"])
        self._returns[:], self._lengths[:] = state["returns"], state["lengths"]

    def rest(self, index: int) -> None:
        """Pause a slot until the next reset."""
        self._ask("rest", index)

    def executed(self, index: int = 0) -> list[Any] | None:
        """As the wrappers of the slot's env remember it."""
        given: list[Any] | None = self._ask("executed", index)
        return given

    def render(self, index: int = 0) -> np.ndarray | None:
        """Frame of one slot; envs made without a render mode give None."""
        frame: np.ndarray | None = self._ask("render", index)
        return frame

    def _ask(self, command: str, index: int) -> Any:
        """The answer of one slot."""
        worker = next(worker for worker in self._workers if index < worker.envs.stop)
        return self._command(command, {worker.index: (index - worker.envs.start,)})[0]

    def _command(self, command: str, arguments: dict[int, Any], patience: float = 1) -> list[Any]:
        """Give some workers a command and collect the results; a worker lost meanwhile is replaced and asked again."""
        for index, argument in arguments.items():
            self._send(self._workers[index], command, argument)
        results: dict[int, Any] = {}
        failures: list[WorkerError] = []
        for index in arguments:
            try:
                results[index] = self._workers[index].reply(patience)
            except WorkerError as error:
                failures.append(error)
        for failure in failures:
            index = failure.worker.index
            if failure.refused:
                raise EnvError(failure.what)
            if failure.trace and command != "reset":  # the worker lives; the same command would raise again
                raise EnvError(self._explain(failure))
            self._replace(failure)
            if command != "reset":  # replacing includes a reset
                (results[index],) = self._command(command, {index: arguments[index]}, patience)
        return [results.get(index) for index in arguments]

    def _send(self, worker: Worker, command: str, argument: Any) -> None:
        self._shared.control[worker.index, REQUEST] = COMMAND
        with contextlib.suppress(OSError):  # a dead worker is noticed when its reply does not come
            worker.conn.send((command, argument))
        worker.go.release()

    def _replace(self, failure: WorkerError) -> None:
        """Put a fresh worker with freshly seeded envs in the place of a failed one, or close everything and raise."""
        while True:
            if failure.refused:  # what an env returns is wrong, and a fresh one would return the same
                self.close()
                raise EnvError(failure.what)
            text, old = self._explain(failure), failure.worker
            if self.on_failure == "abort" or self._restarts >= self.max_restarts:
                spent = ""
                if self.on_failure == "restart":
                    spent = f"Env workers failed more than {self.max_restarts} times. "
                self.close()
                raise EnvError(spent + text)
            self._restarts += 1
            meaning = MEANING if self._restarts == 1 else ""
            log.warning(REPLACED, text, self._restarts, self.max_restarts, meaning)
            old.kill()
            for i in range(old.envs.start, old.envs.stop):
                sequence = np.random.SeedSequence([self._original_seeds[i] or 0, self._restarts])
                self._seeds[i] = int(sequence.generate_state(1)[0] >> 1)
            self._shared.control[old.index, AT], self._shared.control[old.index, REQUEST] = IDLE, STEP
            new = self._workers[old.index] = self._start(old.index, old.envs)
            try:
                new.reply()
                self._attach(new)
                self._send(new, "reset", (self._seeds[new.envs],))
                new.reply()
            except WorkerError as next_failure:
                failure = next_failure
                continue
            self._interrupted.add(new.index)
            return

    def _explain(self, failure: WorkerError) -> str:
        """A sentence that names the env, its seed and its last action, then the worker's traceback if it is a new one."""
        worker, shared = failure.worker, self._shared
        at = self._at(worker)
        if at == IDLE:
            seeds, actions = self._seeds[worker.envs], shared.actions[worker.envs].tolist()
            history = f"Its envs were last reset with seeds {seeds} and their last actions were {actions}."
            return f"{_name(worker)} {failure.what}. {history}{self._new_trace(failure)}"
        i = worker.envs.start + at
        history = f"It was last reset with seed {self._seeds[i]} and its last action was {shared.actions[i].tolist()}."
        return f"Env {i} (in worker {worker.index}) {failure.what}. {history}{self._new_trace(failure)}"

    def _new_trace(self, failure: WorkerError) -> str:
        """The traceback of a failure, unless the same lines were shown before; the exception's own words may differ."""
        lines = failure.trace.rpartition("\n")[0]
        if lines in self._traces:
            return ""
        self._traces.add(lines)
        return failure.trace

    def _at(self, worker: Worker) -> int:
        """The env of a worker that is being stepped, or IDLE."""
        return int(self._shared.control[worker.index, AT])

    def counters(self) -> dict[str, float]:
        """How often a worker was replaced."""
        return {"env/worker_restarts": self._restarts}

    def describe(self) -> str:
        """How the envs are stepped, in words for the log."""
        return f"{self.n_envs} envs in {count(self.n_workers, 'worker process', 'worker processes')}"

    def close(self) -> None:
        """End all workers and free the shared memory."""
        self._stepping = []  # whoever holds a worker keeps its semaphores
        self._resources.close()


def start_server(context: Any = None, preload: Sequence[str] = ()) -> None:
    """Start the server that workers are forked from, if it does not run yet; it goes on by itself.

    Modules are imported once there, those of the env's family included, and each worker shares their memory.
    """
    from multiprocessing import forkserver

    context = context or multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, *preload])
    start_tracker()
    with clean_start(), deaf_to_stop_signals():
        forkserver.ensure_running()


def _payload(make: MakeEnv | MakeVector, by_lanes: bool, action_mask: bool, around: AroundVector | None) -> bytes:
    """What a worker needs to make its envs."""
    try:
        return bytes(cloudpickle.dumps((make, by_lanes, action_mask, around, registered(envs=not by_lanes))))
    except Exception as error:
        raise EnvError(f"The function that makes the env cannot be sent to a worker process: {error}") from error


def registered(*, envs: bool = True) -> bytes:
    """All registered envs, and the objects that configs of this program name, for a process that does not run its script.

    Classes and functions are unpacked there only when they are needed: the modules of the others, with torch perhaps, stay
    unimported.
    """
    specs = []
    for spec in gym.registry.values() if envs else ():
        if callable(spec.entry_point):
            later = _packed(spec.entry_point, spec.id)
            if later is None:
                continue
            spec = dataclasses.replace(spec, entry_point=later, vector_entry_point=None)  # noqa: PLW2901
        specs.append(spec)
    objects = {name: _packed(thing, name) for name, thing in own_code.remembered().items()}
    return bytes(cloudpickle.dumps((specs, {name: later for name, later in objects.items() if later is not None})))


def can_be_sent(thing: Any) -> bool:
    """Whether worker processes can have an object of this program."""
    return _packed(thing, "object") is not None


def _packed(thing: Any, name: str) -> LazyEntry | None:
    """The object for another process; None if it cannot be sent, so that the others still can."""
    try:
        return LazyEntry(cloudpickle.dumps(thing))
    except Exception:
        log.debug("'%s' cannot be sent to worker processes", name)
        return None


def _name(worker: Worker) -> str:
    return f"Worker {worker.index} (envs {worker.envs.start} to {worker.envs.stop - 1})"
