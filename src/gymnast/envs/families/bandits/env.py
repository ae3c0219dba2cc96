"""One bandit as a Gymnasium env."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.families.bandits.game import STATE, Game
from gymnast.envs.families.bandits.rules import Rules


class BanditEnv(gym.Env[Any, np.int64]):
    """Pull one of several arms, each with its own expected reward; `Rules` are the arguments.

    The step's info holds the regret of the episode so far, the best arm of that pull and its mean.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, render_mode: str | None = None, **rules: Any) -> None:
        self.rules = Rules(**rules)
        self.render_mode = render_mode
        self.observation_space = self.rules.observation_space
        self.action_space = spaces.Discrete(self.rules.arms)
        self._game = Game(self.rules, 1)
        if self.rules.means is not None and not self.rules.drift and self.rules.observe == "nothing":
            # One state that leads to itself: what exact evaluation reads. Expected rewards are enough for expectations.
            self.P = {0: {arm: [(1.0, 0, mean, False)] for arm, mean in enumerate(self.rules.means)}}
            self.initial_state_distrib = np.ones(1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; means that are not given are drawn again."""
        super().reset(seed=seed)
        self._game.generators = [self.np_random]
        self._game.start(0)
        return self._observation(), self._game.info(0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Pull an arm. Episodes end only at the time limit."""
        reward = float(self._game.pull(np.asarray([action]))[0])
        return self._observation(), reward, False, False, self._game.info(0)

    def _observation(self) -> Any:
        space = self.observation_space
        if isinstance(space, spaces.Discrete):
            return 0
        out = np.zeros((1, *(space.shape or ())), np.float32)
        self._game.observe(out)
        return out[0]

    @property
    def state(self) -> tuple[np.ndarray, ...]:
        """All that changes, but for the generator: what a snapshot holds."""
        return tuple(self._game.save_state().values())

    @state.setter
    def state(self, saved: tuple[np.ndarray, ...]) -> None:
        self._game.load_state(dict(zip(STATE, saved, strict=True)))

    def render(self) -> np.ndarray | None:
        """The arms as bars: true mean, estimate, pulls, the last reward, and the regret so far."""
        if self.render_mode != "rgb_array":
            return None
        from gymnast.envs.families.bandits.drawing import draw

        return draw(self._game)
