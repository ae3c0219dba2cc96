"""An env that paints the number of its step into every picture, as eight squares, and shows the policy a small one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Numbered(gym.Env):
    """Ends after `LENGTH` steps; pays 1 for action 1."""

    LENGTH = 60
    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012 - Gymnasium's convention

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0, 255, (1, 40, 40), np.uint8)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Step 0."""
        super().reset(seed=seed)
        self.now = 0
        return self._painted(40, 40)[None], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One more."""
        self.now += 1
        return self._painted(40, 40)[None], float(action == 1), False, self.now == self.LENGTH, {}

    def _painted(self, height: int, width: int) -> np.ndarray:
        bits = [255 * (self.now >> (7 - bit) & 1) for bit in range(8)]
        return np.repeat(np.repeat(np.array([bits], np.uint8), width // 8, 1), height, 0)

    def render(self) -> Any:
        """The same, larger and in three colours."""
        return np.repeat(self._painted(120, 160)[..., None], 3, -1)


if "Numbered-v0" not in gym.registry:
    gym.register("Numbered-v0", f"{__name__}:Numbered")
