"""The picture of an env as its observation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.wrappers.single import Reset, SingleEnvWrapper, Step
from gymnast.errors import ConfigError


@contextmanager
def no_window() -> Iterator[None]:
    """Frames need no display, but SDL looks for one, and complains or fails where there is none."""
    name = "SDL_VIDEODRIVER"
    if name in os.environ:
        yield
        return
    os.environ[name] = "dummy"
    try:
        yield
    finally:
        del os.environ[name]


class Pixels(SingleEnvWrapper):
    """Shows the rendered frame [height, width, 3] instead of the observation."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        env.reset(seed=0)  # few envs can draw themselves before; training resets them anew
        with no_window():
            self.observation_space = spaces.Box(0, 255, self._frame().shape, np.uint8)

    def _frame(self) -> np.ndarray:
        frame: Any = self.env.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.dtype != np.uint8:
            name = self.spec.id if self.spec else type(self.unwrapped).__name__
            what = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise ConfigError(
                f"Wrapper 'pixels' needs an env that draws frames of bytes [height, width, 3]; {name} drew {what}."
            )
        return frame

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """The first frame."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._frame(), info

    def step(self, action: Any) -> Step:
        """The frame after the step."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._frame(), float(reward), terminated, truncated, info
