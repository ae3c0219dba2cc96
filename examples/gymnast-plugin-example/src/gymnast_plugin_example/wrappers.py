"""A wrapper of all envs at once, and a Gymnasium wrapper of one env."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import ConfigError


class Mirror(VectorWrapper):
    """Swaps two actions: what was left is right."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        if not (isinstance(inner.action_space, gym.spaces.Discrete) and inner.action_space.n == 2):
            raise ConfigError(f"Wrapper 'mirror' needs two actions, this env has {inner.action_space}.")

    def send(self, actions: np.ndarray) -> None:
        """Step with the other action."""
        self.inner.send(1 - actions)


class Hurry(gym.Wrapper):
    """Every step costs something more."""

    def __init__(self, env: gym.Env, cost: float = 0.01) -> None:
        super().__init__(env)
        self.cost = cost

    def step(self, action: Any):
        """Take the cost off the reward."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, float(reward) - self.cost, terminated, truncated, info
