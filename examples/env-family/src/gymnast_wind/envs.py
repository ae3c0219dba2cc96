"""Sailing to a buoy in a wind that outlives the episode. Importing this module registers the envs."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

LIMIT = 50
PUSH = 0.1


class Sailor(gym.Env[np.ndarray, int]):
    """Steer left or right on a line; the buoy is at 0, every step costs the distance to it.

    The wind goes on when an episode ends. Repeating the actions of an episode therefore does not bring a sailor back to where
    it was, and the env saves itself.
    """

    metadata = {"render_modes": [], "render_fps": 10}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, gusts: float = 0.02) -> None:
        self.gusts = gusts
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.place = self.wind = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Anywhere; a seed also calms the wind."""
        super().reset(seed=seed)
        if seed is not None:
            self.wind = 0.0
        self.place = self.np_random.uniform(-1.0, 1.0)
        return self._seen(), {}

    def step(self, action: int):
        """0 steers left, 1 right."""
        self.wind = 0.9 * self.wind + self.gusts * self.np_random.standard_normal()
        self.place = self.place + (PUSH if action == 1 else -PUSH) + self.wind
        distance = abs(self.place)
        return self._seen(), -distance, bool(distance > 3.0), False, {}

    def _seen(self) -> np.ndarray:
        return np.array([self.place, self.wind], np.float32)

    def save_state(self) -> dict[str, Any]:
        """JSON values and arrays: nothing is pickled."""
        return {"place": self.place, "wind": self.wind, "generator": dict(self.np_random.bit_generator.state)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on there."""
        self.place, self.wind = state["place"], state["wind"]
        self.np_random.bit_generator.state = state["generator"]


gym.register("Wind/Sailor-v0", Sailor, max_episode_steps=LIMIT)
gym.register("Wind/Storm-v0", Sailor, max_episode_steps=LIMIT, kwargs={"gusts": 0.08})
