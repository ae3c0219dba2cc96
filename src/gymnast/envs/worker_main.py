"""The worker side of the process pool: what one worker runs, and the memory it shares with the trainer.

Nothing here imports torch: it would cost every worker a second and 224 MB.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np

from gymnast import own_code
from gymnast.envs.actions import layout as layout_of
from gymnast.envs.inprocess import IDLE, InProcessVector
from gymnast.envs.spaces import allocate, n_masked_actions
from gymnast.envs.vector import EndedEpisode, StepRow, some_rows
from gymnast.errors import RAISED_BY_ENVS, GymnastError
from gymnast.redaction import logger, redact

# Columns of `SharedRows.control`, one line per worker.
REQUEST, ENDED, AT, ASLEEP = range(4)
STEP, COMMAND = 0, 1  # values of REQUEST: step with the shared actions, or read a command from the pipe
SAFE_PATH, WHILE_STARTING = "PYTHONSAFEPATH", "while gymnast starts a process"
"""Python reads this variable and then does not look for modules in the current folder."""
NOTICE = "notice"  # a warning in the pipe, before whatever else the worker has to say
RAISED = -1  # value of ENDED and COUNT: the step raised, the traceback is in the pipe
# Columns of `SharedRows.lanes`, one line per lane: what it does, how many episodes its last step ended, the env being stepped.
STATE, COUNT, LANE_AT = range(3)
FREE, PENDING, DONE = range(3)  # values of STATE
LOOKS = 200  # how often a worker without work looks again, some 30 µs, before it sleeps: waking it costs more than that
NAP_SECONDS = 0.02
ALIGNMENT = 64  # one cache line, so that workers do not fight over neighbouring arrays


class SharedRows:
    """One block of shared memory seen as the arrays of a vector step, for all envs and all workers.

    All views live in this object and nowhere else, so that `close` can release them before the memory.
    """

    def __init__(self, description: dict[str, Any], n_envs: int, n_workers: int, name: str | None = None) -> None:
        obs_space, action_space = description["observation_space"], description["action_space"]
        action_shape, action_dtype = layout_of(action_space)
        one = allocate(obs_space, (0,))
        one_obs = one if isinstance(one, dict) else {"": one}
        layout: list[tuple[str, tuple[int, ...], Any]] = [  # name, shape of one env's entry, dtype
            *((f"obs{key}", array.shape[1:], array.dtype) for key, array in one_obs.items()),
            ("reward", (), np.float64),  # wide, so that the caller's array decides on the precision
            ("own_reward", (), np.float64),
            ("terminated", (), np.bool_),
            ("truncated", (), np.bool_),
            ("mask", (n_masked_actions(action_space) or 0,), np.bool_),
            ("actions", action_shape, action_dtype),
            ("rests", (), np.bool_),
        ]
        layout = [(key, (n_envs, *shape), dtype) for key, shape, dtype in layout]
        layout += [("control", (n_workers, 4), np.int32), ("lanes", (2 * n_workers, 3), np.int32)]
        sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for _, shape, dtype in layout]
        offsets = np.cumsum([0] + [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]).tolist()
        self._memory = _open(name, offsets[-1])
        arrays = {
            key: np.ndarray(shape, dtype, self._memory.buf, offset)
            for (key, shape, dtype), offset in zip(layout, offsets, strict=False)
        }
        obs = {key: arrays[f"obs{key}"] for key in one_obs}
        self.row = StepRow(
            obs=obs if isinstance(one, dict) else obs[""],
            reward=arrays["reward"],
            terminated=arrays["terminated"],
            truncated=arrays["truncated"],
            mask=arrays["mask"] if description["has_action_mask"] else None,
            own_reward=arrays["own_reward"] if description["changes_reward"] else None,
        )
        self.parts: list[StepRow] = []
        """Rows of each lane, as views made once; the pool fills it."""
        self.actions = arrays["actions"]
        self.rests = arrays["rests"]
        """Slots of lanes that should pause; their worker clears the flag."""
        self.control, self.lanes = arrays["control"], arrays["lanes"]
        self.name = self._memory.name

    def part(self, envs: slice) -> StepRow:
        """The rows of some envs, as views."""
        return some_rows(self.row, envs)

    def release(self) -> None:
        """Drop the views and this process's hold on the memory."""
        for name in ("row", "parts", "actions", "rests", "control", "lanes"):
            self.__dict__.pop(name, None)
        with contextlib.suppress(BufferError):  # a traceback still holds a view: the memory goes when that goes
            self._memory.close()

    def unlink(self) -> None:
        """Remove the block's name, so that the system frees it when the last process lets go."""
        with contextlib.suppress(FileNotFoundError):
            self._memory.unlink()


def _open(name: str | None, size: int) -> SharedMemory:
    if name is None:
        return SharedMemory(create=True, size=size)
    # The trainer owns the block. Before Python 3.13 the shared resource tracker registers it twice, which is harmless.
    options: dict[str, Any] = {"track": False} if sys.version_info >= (3, 13) else {}
    return SharedMemory(name, **options)


@dataclass
class Channel:
    """How a worker talks to the trainer: semaphores for steps, a pipe for everything rare."""

    conn: Connection
    go: Any
    done: Any
    index: int
    """Number of the worker."""
    envs: slice
    """The envs of the pool that this worker runs."""


def run(channel: Channel, payload: bytes, die_by_signal: bool) -> None:
    """Serve the trainer until it says close or dies."""
    # A signal to the whole process group is for the trainer, which still needs the envs to write its checkpoint.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    started()
    die_with_trainer(die_by_signal)
    np.random.seed()  # noqa: NPY002 - forked workers would share the global generator that some envs draw from
    conn = channel.conn
    with contextlib.suppress(BrokenPipeError, EOFError, ConnectionResetError):
        logger("gymnast").addHandler(Mail(conn))
        try:
            vector = _make_envs(payload, channel.envs.stop - channel.envs.start)
        except BaseException as error:
            conn.send(_failure(error))
            return
        if "cv2" in sys.modules:
            sys.modules["cv2"].setNumThreads(1)  # every core has a worker already
        kept = ("observation_space", "action_space", "has_action_mask", "changes_reward", "exact_resume")
        conn.send(("ok", {key: getattr(vector, key) for key in kept}))
        _, arguments = conn.recv()
        shared = SharedRows(*arguments)
        conn.send(("ok", None))
        parts = [(_bottom(vector), channel.envs)]
        if isinstance(vector, Halves):
            parts = list(zip(vector.bottoms, halves(channel.envs), strict=True))
        for bottom, slots in parts:
            bottom.first_look.first_slot = slots.start
        serve = _serve_lanes if isinstance(vector, Halves) else _serve
        serve(channel, vector, shared)
        for bottom, _ in parts:
            bottom.at = [IDLE]  # the last view into the shared memory
        shared.release()


class Mail(logging.Handler):
    """Sends warnings to the trainer, which says them once for all workers and in the run's log.

    It learns of them with the next thing it reads from this worker: a result, or an ended episode.
    """

    def __init__(self, conn: Connection) -> None:
        super().__init__(logging.WARNING)
        self._conn = conn

    def emit(self, record: logging.LogRecord) -> None:
        """One warning, and by which key it is said only once."""
        text = record.getMessage().removeprefix("warning: ")
        with contextlib.suppress(OSError):
            self._conn.send((NOTICE, (getattr(record, "once", None), text)))


def _make_envs(payload: bytes, count: int) -> Any:
    make, by_lanes, action_mask, around, specs = cloudpickle.loads(payload)
    register_all(specs)
    if by_lanes:
        return Halves(make, count)
    envs = InProcessVector(make, count, action_mask=action_mask)
    if around is None:
        return envs
    return around(envs)


class LazyEntry:
    """A registered class or function that is unpacked when its env is made."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def thing(self) -> Any:
        """The object itself."""
        return cloudpickle.loads(self._packed)

    def __call__(self, *args: Any, **kwargs: Any) -> gym.Env:
        """Unpack the entry point and make the env."""
        env: gym.Env = self.thing()(*args, **kwargs)
        return env


def register_all(specs: bytes) -> None:
    """Register what `workers.registered` packed.

    The user's module registers its envs once more when it is imported for an id such as `module:Env-v0`. Gymnasium warns of each,
    in every process.
    """
    warnings.filterwarnings("ignore", message=".*Overriding environment")
    envs, objects = cloudpickle.loads(specs)
    for spec in envs:
        gym.registry.setdefault(spec.id, spec)
    own_code.unpack_later({name: packed.thing for name, packed in objects.items()})


def _serve(channel: Channel, vector: Any, shared: SharedRows) -> None:
    conn, go, done, envs = channel.conn, channel.go, channel.done, channel.envs
    control, actions, part = shared.control[channel.index], shared.actions[envs], shared.part(envs)
    bottom = _bottom(vector)
    bottom.at = memoryview(control)[AT : AT + 1]
    bottom.at[0] = IDLE
    while True:
        go.acquire()
        if control[REQUEST] == STEP:
            try:
                ended = vector.step(actions, part)
            except BaseException as error:
                control[ENDED] = RAISED
                done.release()
                conn.send(_failure(error))
                return
            control[ENDED] = len(ended)
            done.release()
            if ended:
                _send_ended(conn, ended, envs.start)
            continue
        if not _obey(conn, vector, part):
            return


def _obey(conn: Connection, vector: Any, part: StepRow) -> bool:
    """Do what the next message says; False after the last one."""
    command, arguments = conn.recv()
    try:
        if command == "close":
            vector.close()
            return False
        arguments = (*arguments, part) if command == "reset" else arguments
        conn.send(("ok", getattr(vector, command)(*arguments)))
    except RAISED_BY_ENVS as error:
        conn.send(_failure(error))
    return True


def _failure(error: BaseException) -> tuple[str, str]:
    """What to tell the trainer: our own errors say all that there is, and no new worker would fare better."""
    if isinstance(error, GymnastError):
        return "refused", str(error)
    return "raised", redact(traceback.format_exc())


def halves(envs: slice) -> tuple[slice, slice]:
    """The slots of a worker's two lanes."""
    middle = (envs.start + envs.stop + 1) // 2
    return slice(envs.start, middle), slice(middle, envs.stop)


class Halves:
    """The two lanes of a worker, each a vector env: while the trainer chooses actions for one, the other is stepped."""

    def __init__(self, make: Any, count: int) -> None:
        self.parts = halves(slice(0, count))
        self.vectors = [make(part.stop - part.start) for part in self.parts]
        first = self.vectors[0]
        self.observation_space, self.action_space = first.observation_space, first.action_space
        self.has_action_mask, self.exact_resume = first.has_action_mask, first.exact_resume
        self.changes_reward = first.changes_reward
        self.bottoms = [_bottom(vector) for vector in self.vectors]

    def reset(self, seeds: Sequence[int], rows: StepRow) -> None:
        """Seed and reset every slot."""
        for vector, part in zip(self.vectors, self.parts, strict=True):
            vector.reset(seeds[part], some_rows(rows, part))

    def save_state(self) -> dict[str, Any]:
        """As if all slots were one vector env."""
        first, second = (vector.save_state() for vector in self.vectors)
        return {key: value + second[key] if isinstance(value, list) else value for key, value in first.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Give each half the state of its slots."""
        for vector, part in zip(self.vectors, self.parts, strict=True):
            vector.load_state({key: v[part] if isinstance(v, list) else v for key, v in state.items()})

    def executed(self, index: int) -> Any:
        """As the slot's vector env says."""
        return self._of(index, "executed")

    def render(self, index: int) -> Any:
        """Frame of one slot."""
        return self._of(index, "render")

    def _of(self, index: int, what: str) -> Any:
        which = int(index >= self.parts[1].start)
        return getattr(self.vectors[which], what)(index - self.parts[which].start)

    def close(self) -> None:
        """Close the envs of both halves."""
        for vector in self.vectors:
            vector.close()


def _bottom(vector: Any) -> Any:
    """What steps the envs, below the wrappers of the batch."""
    while hasattr(vector, "inner"):
        vector = vector.inner
    return vector


def _serve_lanes(channel: Channel, vectors: Halves, shared: SharedRows) -> None:
    """Step whichever lane has actions, by turns; look for the next ones a while, then sleep."""
    conn, go, index = channel.conn, channel.go, channel.index
    control, states = shared.control[index], shared.lanes[2 * index : 2 * index + 2]
    lanes = halves(channel.envs)
    rows, actions = [shared.part(slots) for slots in lanes], [shared.actions[slots] for slots in lanes]
    rests = [shared.rests[slots] for slots in lanes]
    whole = shared.part(channel.envs)
    for bottom, line in zip(vectors.bottoms, states, strict=True):
        bottom.at = memoryview(line)[LANE_AT : LANE_AT + 1]
        bottom.at[0] = IDLE
    turn = looks = 0
    while True:
        if states[turn, STATE] != PENDING:
            turn, looks = 1 - turn, looks + 1
            if looks > LOOKS:
                looks = 0
                control[ASLEEP] = 1
                if control[REQUEST] != COMMAND and (states[:, STATE] != PENDING).all():
                    go.acquire(
                        True, NAP_SECONDS
                    )  # a wake-up that comes between the look and this is not missed for long
                control[ASLEEP] = 0
                if control[REQUEST] == COMMAND:
                    control[REQUEST] = STEP
                    if not _obey(conn, vectors, whole):
                        return
            continue
        looks = 0
        if rests[turn].any():
            for slot in np.flatnonzero(rests[turn]).tolist():
                vectors.vectors[turn].rest(slot)
            rests[turn][...] = False
        try:
            ended = vectors.vectors[turn].step(actions[turn], rows[turn])
        except BaseException as error:
            states[turn, COUNT], states[turn, STATE] = RAISED, DONE
            conn.send(_failure(error))
            return
        states[turn, COUNT], states[turn, STATE] = len(ended), DONE
        if ended:
            _send_ended(conn, ended, lanes[turn].start, lane=2 * index + turn)
        turn = 1 - turn


def _send_ended(conn: Connection, ended: Sequence[EndedEpisode], offset: int, lane: int | None = None) -> None:
    for episode in ended:
        episode.index += offset
    try:
        conn.send(ended if lane is None else (lane, ended))
    except Exception:  # pickling fails in many ways, always before anything is written
        for episode in ended:
            plain = (bool, int, float, str, np.ndarray, np.generic)
            episode.infos = {key: value for key, value in episode.infos.items() if isinstance(value, plain)}
        conn.send(ended if lane is None else (lane, ended))


def started() -> None:
    """What a user's env starts itself finds its modules as usual."""
    if os.environ.get(SAFE_PATH) == WHILE_STARTING:
        del os.environ[SAFE_PATH]


def die_with_trainer(by_signal: bool) -> None:
    """Leave no orphan when the trainer is killed, also while an env hangs."""
    trainer = multiprocessing.parent_process()
    assert trainer is not None

    def watch() -> None:
        wait([trainer.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watch trainer").start()
    if by_signal and sys.platform == "linux":
        # The thread cannot run while an env hangs in C code that holds the interpreter lock; the kernel can.
        # Under a fork server the parent is that server, which ends with the trainer unless workers hold its pipe open.
        from multiprocessing import forkserver

        server: Any = forkserver._forkserver
        inherited = getattr(server, "_forkserver_alive_fd", None)
        if inherited is not None:
            os.close(inherited)
            server._forkserver_alive_fd = None
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
