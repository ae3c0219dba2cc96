"""Envs the wrappers are tried on: random observations, rewards and ends, all from the seed."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class LogEnv(gym.Env):
    """Remembers what it was given; long episodes of random length, images of random bytes."""

    def __init__(self, action_space=None, images=False):
        self.action_space = spaces.Discrete(5) if action_space is None else action_space
        shape, dtype = ((3, 4), np.uint8) if images else ((2,), np.float32)
        self.observation_space = spaces.Box(0, 255, shape, dtype)
        self.log = []

    def draw(self):
        return self.np_random.integers(0, 256, self.observation_space.shape).astype(self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.frames = [self.draw()]
        return self.frames[-1], {}

    def step(self, action):
        self.log.append(action)
        self.frames.append(self.draw())
        reward = float(self.np_random.integers(3) == 0)
        return self.frames[-1], reward, bool(self.np_random.random() < 0.05), False, {"frame": len(self.frames)}


class ImageEnv(gym.Env):
    """Random pictures, random ends; as a Dict with a number beside them if asked."""

    def __init__(self, shape=(12, 10, 3), parts=False):
        self.image = spaces.Box(0, 255, shape, np.uint8)
        self.observation_space = (
            spaces.Dict({"screen": self.image, "health": spaces.Box(0, 100, (1,))}) if parts else self.image
        )
        self.action_space, self.parts = spaces.Discrete(3), parts

    def draw(self):
        image = self.np_random.integers(0, 256, self.image.shape, np.uint8)
        return (
            {"screen": image, "health": self.np_random.uniform(0, 100, 1).astype(np.float32)} if self.parts else image
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.draw(), {}

    def step(self, action):
        terminated, truncated = self.np_random.random(2) < 0.1
        return self.draw(), 1.0, bool(terminated), bool(truncated), {}
