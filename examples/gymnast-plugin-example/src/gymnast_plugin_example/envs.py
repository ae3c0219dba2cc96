"""A corridor with the way out at its right end. Importing this module registers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

PRESETS = Path(__file__).parent / "presets"
"""Where gymnast finds the files of these envs."""


class Corridor(gym.Env):
    """Walk right until the end; every step costs 0.1, the way out pays 1."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, length: int = 8, render_mode: str | None = None) -> None:
        self.length, self.render_mode = length, render_mode
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Anywhere in the left half."""
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(self.length // 2))
        return self._seen(), {}

    def step(self, action: int):
        """0 is left, 1 is right."""
        self.place = min(max(self.place + (1 if action == 1 else -1), 0), self.length - 1)
        out = self.place == self.length - 1
        return self._seen(), 1.0 if out else -0.1, out, False, {"is_success": out}

    def _seen(self) -> np.ndarray:
        return np.array([2.0 * self.place / (self.length - 1) - 1.0], np.float32)

    def render(self) -> np.ndarray:
        """One square per place."""
        frame = np.full((32, 32 * self.length, 3), 235, np.uint8)
        frame[4:28, 32 * self.place + 4 : 32 * self.place + 28] = (40, 90, 160)
        return frame


gym.register("Example/Corridor-v0", Corridor, max_episode_steps=50)
