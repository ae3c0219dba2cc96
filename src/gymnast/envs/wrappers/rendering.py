"""The picture of an env as its observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.drawing import drawing
from gymnast.envs.wrappers.single import Reset, SingleEnvWrapper, Step
from gymnast.errors import ConfigError


class Pixels(SingleEnvWrapper):
    """Shows the rendered frame [height, width, 3] instead of the observation."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        env.reset(seed=0)  # few envs can draw before a reset; training resets them again
        with drawing(env.spec):
            self.observation_space = spaces.Box(0, 255, self._frame().shape, np.uint8)

    def _frame(self) -> np.ndarray:
        frame: Any = self.env.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.dtype != np.uint8:
            if self.spec:
                name = self.spec.id
            else:
                name = type(self.unwrapped).__name__
            if isinstance(frame, np.ndarray):
                what = f"{frame.dtype} {frame.shape}"
            else:
                what = type(frame).__name__
            raise ConfigError(
                f"Wrapper 'pixels' needs an env that draws frames of bytes [height, width, 3]; {name} drew {what}."
            )
        return frame

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Reset, and observe the first picture."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._frame(), info

    def step(self, action: Any) -> Step:
        """The frame after the step."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._frame(), float(reward), terminated, truncated, info
