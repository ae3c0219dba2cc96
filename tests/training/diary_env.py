"""An env that writes down all that happens to it, for those who count again what was logged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

REWARDS = (-3.0, 0.0, 1.0, 7.0)
LIMIT = 20


@dataclass
class Episode:
    """One episode from its reset on; observations have one more than steps."""

    observations: list[np.ndarray]
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    success: bool = False
    regret: float = 0.0

    @property
    def ended(self) -> bool:
        """By itself or by the time limit."""
        return self.terminated or len(self.rewards) == LIMIT


class Diary(gym.Env):
    """Few states and rewards, so that transitions repeat; some episodes end, the others are cut off."""

    def __init__(self, box: bool = False) -> None:
        self.observation_space = spaces.Box(0.0, 2.0, (3,), np.float32)
        self.action_space: spaces.Space = spaces.Box(-1.0, 1.0, (2,), np.float32) if box else spaces.Discrete(3)
        self.episodes: list[Episode] = []

    def _draw(self) -> np.ndarray:
        return self.np_random.integers(0, 2, 3).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a page."""
        super().reset(seed=seed)
        self.episodes.append(Episode([self._draw()]))
        return self.episodes[-1].observations[0].copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Rewards depend on the action and on chance."""
        page, random = self.episodes[-1], self.np_random
        choice = int(action) if isinstance(self.action_space, spaces.Discrete) else int(np.asarray(action).sum() > 0)
        reward = REWARDS[(choice + int(random.integers(3))) % 4]
        page.rewards.append(reward)
        page.observations.append(self._draw())
        page.terminated = bool(random.random() < 0.06)
        page.success, page.regret = bool(random.random() < 0.5), float(random.random())
        info = {"is_success": page.success, "regret": page.regret}
        return page.observations[-1].copy(), reward, page.terminated, False, info


def register() -> None:
    """Under ids that end in -v0."""
    for name, kwargs in (("Diary-v0", {}), ("BoxDiary-v0", {"box": True})):
        gym.register(name, Diary, max_episode_steps=LIMIT, kwargs=kwargs)


if "Diary-v0" not in gym.registry:
    register()
