"""All sailors in two arrays: the same bits as single envs, in a fraction of the time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from gymnast.config.schema import EnvConfig
from gymnast.envs.registry import env_spec
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast_wind.envs import PUSH, Sailor


def native_sailor(config: EnvConfig) -> Callable[[int], VectorEnv] | str:
    """What makes the vector form, or why there is none."""
    limit = time_limit_of(config)
    if limit is None:
        return "it needs a time limit"
    return functools.partial(SailorVector, limit=limit, **env_spec(config.id).kwargs | config.kwargs)


class SailorVector(VectorEnv):
    """N sailors, each with its own generator."""

    exact_resume = "snapshot"

    def __init__(self, n_envs: int, *, limit: int, gusts: float = 0.02) -> None:
        one = Sailor()
        self.n_envs, self.observation_space, self.action_space = n_envs, one.observation_space, one.action_space
        self._limit, self._gusts = limit, gusts
        self._place, self._wind, self._return = np.zeros(n_envs), np.zeros(n_envs), np.zeros(n_envs)
        self._steps = np.zeros(n_envs, np.int64)
        self._generators: list[np.random.Generator] = []

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed each slot by itself, so that slot i plays what a single env with its seed plays."""
        self._generators = [seeding.np_random(seed)[0] for seed in seeds]
        self._wind[:] = 0.0
        for i in range(self.n_envs):
            self._begin(i)
        self._show(row)

    def _begin(self, i: int) -> None:
        self._place[i] = self._generators[i].uniform(-1.0, 1.0)
        self._steps[i] = self._return[i] = 0

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Write what came of the actions into the caller's row; begin ended episodes anew at once."""
        gusts = np.array([generator.standard_normal() for generator in self._generators])
        self._wind[:] = 0.9 * self._wind + self._gusts * gusts
        self._place[:] = self._place + np.where(actions == 1, PUSH, -PUSH) + self._wind
        distance = np.abs(self._place)
        self._steps += 1
        self._return -= distance
        row.reward[...] = -distance
        row.terminated[...] = distance > 3.0
        row.truncated[...] = self._steps >= self._limit
        self._show(row)
        ended = [self._end(i, row) for i in np.flatnonzero(row.terminated | row.truncated)]
        if ended:
            self._show(row)
        return ended

    def _end(self, i: int, row: StepRow) -> EndedEpisode:
        episode = EndedEpisode(
            int(i), row.obs[i].copy(), float(self._return[i]), int(self._steps[i]), bool(row.terminated[i])
        )
        self._begin(i)
        return episode

    def _show(self, row: StepRow) -> None:
        row.obs[:, 0], row.obs[:, 1] = self._place, self._wind

    def save_state(self) -> dict[str, Any]:
        """All slots."""
        arrays = {name: getattr(self, f"_{name}").copy() for name in ("place", "wind", "return", "steps")}
        return {**arrays, "generators": [dict(generator.bit_generator.state) for generator in self._generators]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on there."""
        for name in ("place", "wind", "return", "steps"):
            getattr(self, f"_{name}")[...] = state[name]
        self._generators = [seeding.np_random(0)[0] for _ in state["generators"]]
        for generator, saved in zip(self._generators, state["generators"], strict=True):
            generator.bit_generator.state = saved
