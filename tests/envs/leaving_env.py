"""An env that calls `sys.exit` where it is told to."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np

PLACES = ("init", "reset", "step", "render", "close")


class Leaving(gym.Env):
    """Short random episodes; `where` names the method that ends the program."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 - Gymnasium's own way
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, where: str = "", render_mode: str | None = None) -> None:
        self.where, self.render_mode = where, render_mode
        self._pass("init")

    def _pass(self, place: str) -> None:
        if place == self.where:
            sys.exit("I leave")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Anywhere."""
        super().reset(seed=seed)
        self._pass("reset")
        return self._look(), {}

    def step(self, action: Any) -> Any:
        """To anywhere."""
        self._pass("step")
        return self._look(), 1.0, bool(self.np_random.random() < 0.2), False, {}

    def _look(self) -> np.ndarray:
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)

    def render(self) -> Any:
        """Grey."""
        self._pass("render")
        return np.full((8, 8, 3), 127, np.uint8)

    def close(self) -> None:
        """Nothing is open."""
        self._pass("close")


gym.register("Leaving-v0", f"{__name__}:Leaving")
