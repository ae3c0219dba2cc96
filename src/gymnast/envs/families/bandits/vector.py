"""N bandits as one numpy program, equal to single envs to the last bit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding

from gymnast.config.schema import EnvConfig
from gymnast.envs.families.bandits import REGISTERED
from gymnast.envs.families.bandits.game import Game
from gymnast.envs.families.bandits.rules import Rules
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError


def native_bandit(config: EnvConfig) -> Callable[[int], VectorEnv] | str:
    """Constructor of the vector form, or why there is none."""
    if config.id not in REGISTERED:
        return ""
    limit = time_limit_of(config)
    if limit is None:
        return "it needs a time limit"
    kwargs = REGISTERED[config.id] | config.kwargs
    try:
        Rules(**kwargs)
    except (TypeError, ValueError):
        return "the env refuses these env.kwargs"
    return functools.partial(BanditVector, max_episode_steps=limit, **kwargs)


class BanditVector(VectorEnv):
    """All bandits in the arrays of one game; each slot is seeded by itself."""

    exact_resume = "snapshot"

    def __init__(self, n_envs: int, *, max_episode_steps: int, **rules: Any) -> None:
        self.n_envs = n_envs
        self._game = Game(Rules(**rules), n_envs)
        self.observation_space = self._game.rules.observation_space
        self.action_space = spaces.Discrete(self._game.rules.arms)
        self._limit = max_episode_steps
        self._steps = np.zeros(n_envs, np.int64)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed each slot by itself."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        self._game.generators = [seeding.np_random(seed)[0] for seed in seeds]
        for i in range(self.n_envs):
            self._game.start(i)
        self._steps[:] = 0
        self._game.observe(row.obs)  # type: ignore[arg-type]

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """One pull in every slot; episodes end only at the time limit."""
        row.reward[...] = self._game.pull(actions)
        self._steps += 1
        row.terminated[...] = False
        np.greater_equal(self._steps, self._limit, out=row.truncated)
        self._game.observe(row.obs)  # type: ignore[arg-type]
        if row.truncated.any():
            return self._end(row)
        return NONE_ENDED

    def _end(self, row: StepRow) -> list[EndedEpisode]:
        game, episodes = self._game, []
        for i in np.flatnonzero(row.truncated).tolist():
            final = row.obs[i].copy()  # type: ignore[index]
            episodes.append(EndedEpisode(i, final, float(game.total[i]), int(self._steps[i]), False, game.info(i)))
            game.start(i)
            self._steps[i] = 0
        game.observe(row.obs)  # type: ignore[arg-type]
        return episodes

    def save_state(self) -> dict[str, Any]:
        """The game, step counts and generators."""
        generators = [dict(generator.bit_generator.state) for generator in self._game.generators]
        return {"game": self._game.save_state(), "steps": self._steps.copy(), "generators": generators}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore every slot with its generator."""
        saved_envs = len(state["generators"])
        if saved_envs != self.n_envs:
            raise EnvError(f"The saved state is of {saved_envs} envs, this run has {self.n_envs}.")
        self._game.load_state(state["game"])
        self._steps[...] = state["steps"]
        self._game.generators = [seeding.np_random(0)[0] for _ in state["generators"]]
        for generator, saved in zip(self._game.generators, state["generators"], strict=True):
            generator.bit_generator.state = saved

    def describe(self) -> str:
        """How the bandits are stepped, in words for the log."""
        return f"{self.n_envs} envs, native vector"
