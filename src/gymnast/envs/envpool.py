"""EnvPool: envs in C++, stepped by threads of this process.

EnvPool itself resets a slot in the step after its end, and calls a task that ends at the time limit merely cut off. Here
ended slots are reset at once, by a second request for exactly those slots, and the time limit is counted here: rows and
flags are those of single Gymnasium envs. The random streams are EnvPool's own, so the episodes are others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.amounts import count
from gymnast.config.schema import EnvConfig
from gymnast.envs import parity
from gymnast.envs.choose import cores
from gymnast.envs.spaces import canonical
from gymnast.envs.time_limits import own_limit
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError, MissingPackageError, UsageError

NO_LIMIT = 2**31 - 1
BOOKKEEPING = frozenset({"env_id", "players.env_id", "prob"})


class EnvPoolVector(VectorEnv):
    """N copies of one EnvPool task. One seed per slot; the number of threads changes nothing but the speed."""

    exact_resume = "none"

    def __init__(
        self,
        task: str,
        n_envs: int,
        *,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        n_threads: int,
        max_episode_steps: int | None,
        task_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """The spaces are those of Gymnasium's env: some of EnvPool's have wrong bounds."""
        self.n_envs = n_envs
        self.observation_space = canonical(observation_space)
        self.action_space = action_space
        self._task, self._n_threads = task, min(n_threads, n_envs)
        self._limit = NO_LIMIT if max_episode_steps is None else max_episode_steps
        # One step more than the limit, which is never reached: what EnvPool calls an end is then the task's own.
        self._arguments = {**(task_kwargs or {}), "max_episode_steps": min(self._limit + 1, NO_LIMIT)}
        self._to_env_actions = _action_converter(action_space)
        self._returns = np.zeros(n_envs)
        self._slots = np.arange(n_envs, dtype=np.int32)
        self._clock = 0
        self._started = np.zeros(n_envs, np.int64)
        """The clock's time at which each slot's episode began."""
        self._deadline = self._limit
        """When the oldest episode reaches the limit: nothing is compared before."""
        self._pool: Any = None
        self._check()

    def _check(self) -> None:
        """Refuse a task that is not the same env, before any is made."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of bounds that do not fit their type
            spec = _envpool().make_spec(self._task, num_envs=self.n_envs, **self._arguments)
            theirs, ours = spec.gymnasium_observation_space, self.observation_space
            actions, wanted = spec.gymnasium_action_space, self.action_space
        same_shapes = theirs.shape == ours.shape and actions.shape == wanted.shape
        if not same_shapes or type(actions) is not type(wanted) or getattr(actions, "n", 0) != getattr(wanted, "n", 0):
            raise UsageError(
                f"EnvPool's '{self._task}' has other spaces than Gymnasium's env: {theirs} and {actions} instead of {ours} "
                f"and {wanted}. Set env.vectorization to inprocess or workers."
            )

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """EnvPool takes seeds only when a pool is made, so a new one is made."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        self.close()
        pool = self._pool = _envpool().make_gymnasium(
            self._task,
            num_envs=self.n_envs,
            num_threads=self._n_threads,
            seed=[int(seed) for seed in seeds],
            **self._arguments,
        )
        names = list(pool._state_keys)
        self._obs_at, self._reward_at, self._done_at = (names.index(name) for name in ("obs", "reward", "done"))
        self._info_at = {name[5:]: i for i, name in enumerate(names) if name.startswith("info:")}
        self._action_type = pool.spec.action_array_spec["action"].dtype
        row.obs[...] = self._first_observations(self._slots)  # type: ignore[index]
        self._returns[:], self._started[:] = 0.0, 0
        self._clock, self._deadline = 0, self._limit

    def _first_observations(self, slots: np.ndarray) -> np.ndarray:
        self._pool._reset(slots)
        return np.asarray(self._pool._recv()[self._obs_at])

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step every slot, then reset those that ended.

        This is what `pool.step` does, without the dictionaries it makes on the way: a sixth of the time of cheap envs.
        """
        pool, slots = self._pool, self._slots
        pool._send([slots, slots, self._to_env_actions(actions).astype(self._action_type)])
        state = pool._recv()
        obs, reward, done = state[self._obs_at], state[self._reward_at], state[self._done_at]
        self._clock += 1
        self._returns += reward
        row.obs[...] = obs  # type: ignore[index]
        row.reward[...] = reward
        row.terminated[...] = done
        row.truncated.fill(False)
        if self._clock >= self._deadline:
            np.greater_equal(self._clock - self._started, self._limit, out=row.truncated)
            done = done | row.truncated
        if not np.count_nonzero(done):
            return NONE_ENDED
        ended = np.flatnonzero(done).astype(np.int32)
        episodes = [self._episode(i, state, row) for i in ended.tolist()]
        row.obs[ended] = self._first_observations(ended)  # type: ignore[index]
        self._returns[ended], self._started[ended] = 0.0, self._clock
        self._deadline = int(self._started.min()) + self._limit
        return episodes

    def _episode(self, i: int, state: list[np.ndarray], row: StepRow) -> EndedEpisode:
        infos = {name: state[at][i] for name, at in self._info_at.items() if name not in BOOKKEEPING}
        ret, length = float(self._returns[i]), self._clock - int(self._started[i])
        return EndedEpisode(i, state[self._obs_at][i].copy(), ret, length, bool(row.terminated[i]), infos)

    def save_state(self) -> dict[str, Any]:
        """Refused: the state is inside EnvPool."""
        raise EnvError("EnvPool gives no access to the state of its envs: it cannot be saved.")

    def load_state(self, state: dict[str, Any]) -> None:
        """Refused: the state is inside EnvPool."""
        raise EnvError("EnvPool gives no access to the state of its envs: it cannot be loaded.")

    def describe(self) -> str:
        """How the envs are stepped, in words for the log."""
        return f"{count(self.n_envs, 'env')} in EnvPool, {count(self._n_threads, 'thread')}"

    def close(self) -> None:
        """End the threads of the pool."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


def _action_converter(space: spaces.Space[Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Batched actions as the task wants them, in memory of their own and of the space's type."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        start = np.asarray(space.start)
        return lambda a: (a + start).astype(space.dtype, copy=False)
    return lambda a: np.array(a, space.dtype)


def make_envpool(
    config: EnvConfig, n_envs: int, observation_space: spaces.Space, action_space: spaces.Space
) -> EnvPoolVector:
    """EnvPool's task for this env; an error if there is none for its arguments."""
    row = parity.load().find(config)
    if row is None and config.kwargs:
        raise UsageError(
            f"EnvPool has no '{config.id}' with env.kwargs {config.kwargs} that is known here: "
            "set env.vectorization to inprocess or workers."
        )
    if row:
        task = row.task
    else:
        task = config.id.rpartition(":")[2]
    known = _envpool().list_all_envs()
    if task not in known:
        raise UsageError(f"EnvPool has no '{task}': set env.vectorization to inprocess or workers.")
    return EnvPoolVector(
        task,
        n_envs,
        observation_space=observation_space,
        action_space=action_space,
        n_threads=config.n_workers if isinstance(config.n_workers, int) else cores(),
        max_episode_steps=own_limit(config),
        task_kwargs=row.task_kwargs if row else None,
    )


def _envpool() -> Any:
    try:
        import envpool
    except ImportError:
        what = "Stepping envs with EnvPool (env.vectorization=envpool), whose episodes no other way repeats,"
        raise MissingPackageError(what, "envpool") from None
    return envpool
