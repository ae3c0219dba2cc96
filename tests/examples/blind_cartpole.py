"""CartPole that shows where cart and pole are, and not how fast they move. Importing this module registers it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv

SHOWN = [0, 2]
"""Position of the cart and angle of the pole."""


class Blind(gym.ObservationWrapper):
    """Leaves the speeds out: one observation does not say which way the pole falls."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        whole = env.observation_space
        self.observation_space = gym.spaces.Box(whole.low[SHOWN], whole.high[SHOWN], dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Two of four numbers."""
        return observation[SHOWN]


def make(**kwargs) -> gym.Env:
    """One env."""
    return Blind(CartPoleEnv(**kwargs))


gym.register("BlindCartPole-v0", make, max_episode_steps=500)
