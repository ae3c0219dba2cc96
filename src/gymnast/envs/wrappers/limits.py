"""Wrappers that cut episodes off."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit as GymnasiumTimeLimit

from gymnast.envs.wrappers.single import Reset, SingleEnvWrapper, Step


class NoRewardTimeout(SingleEnvWrapper):
    """Cuts an episode off after `steps` steps without reward: a truncation, so the value of what follows still counts."""

    def __init__(self, env: gym.Env, steps: int) -> None:
        super().__init__(env)
        self._limit, self._waited = steps, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Begin an episode: no step has gone without reward yet."""
        self._waited = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Step:
        """Any reward other than 0 restarts the count."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._waited = 0 if reward else self._waited + 1
        if self._waited >= self._limit and not terminated:
            return obs, float(reward), False, True, {**info, "no_reward_timeout": True}
        return obs, float(reward), terminated, truncated, info

    def save_state(self) -> dict[str, Any]:
        """How many steps have gone without reward."""
        return {"waited": self._waited}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue the count of steps without reward."""
        self._waited = state["waited"]


def TimeLimit(env: gym.Env, steps: int) -> gym.Env:  # noqa: N802 - stands next to the classes
    """Gymnasium's own, which the snapshots know."""
    return GymnasiumTimeLimit(env, steps)
