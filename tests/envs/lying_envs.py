"""Envs that return something else than their spaces and Gymnasium's signature promise, each in one way."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SPACES: dict[str, spaces.Space] = {
    "box": spaces.Box(-1.0, 1.0, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 4, 3), np.uint8),
    "grid": spaces.Box(0, 9, (2,), np.int64),
    "choice": spaces.Discrete(5, start=2),
    "choices": spaces.MultiDiscrete([3, 4]),
    "bits": spaces.MultiBinary(3),
    "dict": spaces.Dict({"eye": spaces.Box(0, 255, (2, 2), np.uint8), "place": spaces.Box(-1.0, 1.0, (3,))}),
    "tuple": spaces.Tuple((spaces.Box(-1.0, 1.0, (3,)), spaces.Discrete(4))),
}


class LyingEnv(gym.Env):
    """Sound but for `lies`: what reset, step or the last step returns in place of the truth; episodes have four steps."""

    def __init__(self, space: str = "box", n_actions: int = 2, **lies: Any) -> None:
        self.observation_space, self.action_space = SPACES[space], spaces.Discrete(n_actions)
        self.lies = lies

    def _honest(self) -> Any:
        self.observation_space.seed(self.steps)
        return self.observation_space.sample()

    def _tell(self, name: str, truth: Any) -> Any:
        return self.lies.get(name, truth)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """An observation and its info, or something else."""
        super().reset(seed=seed)
        self.steps = 0
        info = self._tell("reset_info", {})
        return self._tell("reset", (self._tell("reset_obs", self._honest()), info))

    def step(self, action: Any) -> Any:
        """Four of them are an episode."""
        self.steps += 1
        ended = self.steps == 4
        obs = self._tell("final_obs" if ended else "obs", self._honest())
        flags = self._tell("terminated", ended), self._tell("truncated", False)
        return self._tell("step", (obs, self._tell("reward", 1.0), *flags, self._tell("info", {})))
