"""A scenario or a map of Doom as a Gymnasium env, straight on ViZDoom's engine (ENV-4).

The package's own env gives zeros as the last observation of an episode that was cut off, from which nothing can be
bootstrapped, and calls it terminated as well. Here the end of the time is counted by the env, and the last observation is the
true one. An episode that ends in the game (death, the exit) shows the moment before, on which nobody acts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.families.vizdoom.buttons import action_set
from gymnast.envs.families.vizdoom.camera import Camera
from gymnast.envs.families.vizdoom.engine import Engine
from gymnast.envs.families.vizdoom.scenario import scenario_of
from gymnast.envs.families.vizdoom.screen import Screen
from gymnast.envs.families.vizdoom.settings import settings_of
from gymnast.envs.families.vizdoom.variables import COUNTERS, INFO, check_variables, members
from gymnast.errors import EnvError

TICS_PER_SECOND = 35
NEVER = sys.maxsize
SCREEN, VARIABLES = "screen", "gamevariables"
"""The parts of an observation, by the package's names."""
Reset = tuple[dict[str, np.ndarray], dict[str, Any]]
Step = tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]


class VizdoomGame(gym.Env[dict[str, np.ndarray], Any]):
    """One game; its arguments are the fields of `VizdoomSettings`. The engine starts with the first episode."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 9}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, render_mode: str | None = None, **kwargs: Any) -> None:
        self.settings = settings = settings_of(kwargs)
        self.scenario = scenario_of(settings)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": max(1, round(TICS_PER_SECOND / settings.frame_skip))}
        self._actions = action_set(settings, self.scenario.buttons)
        self.action_space = self._actions.space
        self._variables = list(self.scenario.variables if settings.variables is None else settings.variables)
        check_variables(self._variables)
        self._screen = Screen(settings)
        parts: dict[str, spaces.Space] = {SCREEN: self._screen.space}
        if self._variables:
            parts[VARIABLES] = spaces.Box(-np.inf, np.inf, (len(self._variables),), np.float32)
        self.observation_space = spaces.Dict(parts)  # type: ignore[assignment]
        self.doom_skill = self.scenario.skill
        """Holds from the next episode on."""
        self._names = list(dict.fromkeys([*self._variables, *INFO.values()]))
        """All that the engine tells at once: the agent's inputs, then what else stands in `info`."""
        self._for_info = [self._names.index(name) for name in INFO.values()]
        self._members = members(self._names)
        self._counted = np.array([name in COUNTERS for name in self._names])
        self._engine: Engine | None = None
        self._game: Any = None
        self._camera: Camera | None = None
        self._skip = settings.frame_skip
        self._tics_left = NEVER
        """Until the episode is cut off."""
        self._counted_before: np.ndarray | None = None
        """Events of the saved game from which the episode began."""
        self._picture = np.zeros(self._screen.space.shape, np.uint8)

    def get_action_meanings(self) -> list[str]:
        """The label of each discrete action; empty for `multi`."""
        return list(self._actions.labels)

    @property
    def button_groups(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each number of a `multi` action."""
        return self._actions.groups

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """A new episode, seeded from the env's own generator."""
        super().reset(seed=seed)
        engine = self._running()
        drawn = int(self.np_random.integers(2**32, dtype=np.uint32))
        skill = round(self.doom_skill)
        engine.begin(drawn, skill)
        if self._camera is not None:
            self._camera.begin(drawn, skill)
        self._tics_left = self.scenario.timeout or NEVER
        state = self._game.get_state()
        if self.scenario.start is not None:
            self._counted_before = np.where(self._counted, state.game_variables, 0.0)
        values = np.where(self._counted, 0.0, state.game_variables)
        self._picture = self._screen.shown(state.screen_buffer)
        return self._observed(values), self._info(values)

    def _running(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(
                self.scenario,
                buttons=self._actions.buttons,
                variables=self._names,
                resolution=self._screen.resolution,
                gray=self.settings.gray,
            )
            self._game = self._engine.game
            if self.render_mode is not None:
                self._camera = Camera(self.scenario, self._actions.buttons)
        return self._engine

    def step(self, action: Any) -> Step:
        """Hold the buttons for the tics of one step; the end of an episode cuts them short."""
        game, tics = self._game, min(self._skip, self._tics_left)
        row = self._actions.row(action)
        reward = game.make_action(row, tics)
        if self._camera is not None:
            self._camera.act(row, tics)
        if game.is_episode_finished():
            self._picture = self._picture.copy()  # nobody's two observations lie in the same memory
            values = self._since_start(np.array([game.get_game_variable(member) for member in self._members]))
            return self._observed(values), reward, True, False, self._info(values)
        state = game.get_state()
        values = self._since_start(state.game_variables)
        self._picture = self._screen.shown(state.screen_buffer)
        self._tics_left -= tics
        return self._observed(values), reward, False, self._tics_left == 0, self._info(values)

    def _since_start(self, values: np.ndarray) -> np.ndarray:
        """Events counted from the beginning of the episode."""
        if self._counted_before is None:
            return values
        since: np.ndarray = values - self._counted_before
        return since

    def _observed(self, values: np.ndarray) -> dict[str, np.ndarray]:
        if not self._variables:
            return {SCREEN: self._picture}
        return {SCREEN: self._picture, VARIABLES: values[: len(self._variables)].astype(np.float32)}

    def _info(self, values: np.ndarray) -> dict[str, Any]:
        return dict(zip(INFO, values[self._for_info].tolist(), strict=True))

    def render(self) -> np.ndarray | None:
        """The game in colour, 640×480, whatever the agent sees of it."""
        if self._camera is None:
            return None
        return self._camera.picture()

    def save_game(self, path: str | Path) -> Path:
        """Write the moment into a file (`.zds`), for `env.kwargs.start`, and say which. The engine plays a tic meanwhile."""
        if self._engine is None:
            raise EnvError("Nothing is played yet: reset the env before its game is saved.")
        return self._engine.save(Path(path))

    def close(self) -> None:
        """End the engines."""
        for engine in (self._engine, self._camera):
            if engine is not None:
                engine.close()
        self._engine = self._camera = None
