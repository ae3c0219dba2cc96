"""Large pictures of a game that is seen small: a second engine plays the same episode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gymnast.envs.families.vizdoom.engine import Engine
from gymnast.envs.families.vizdoom.scenario import Scenario

RESOLUTION = "RES_640X480"
HEIGHT, WIDTH = 480, 640


class Camera:
    """Follows a game when a picture is asked for. The size of the picture changes nothing in the game, so both stay alike."""

    def __init__(self, scenario: Scenario, buttons: Sequence[str]) -> None:
        self._engine = Engine(scenario, buttons=buttons, resolution=RESOLUTION, gray=False)
        self._next: tuple[int, int] | None = None
        """Seed and skill of an episode that is to be begun."""
        self._waiting: list[tuple[Sequence[float], int]] = []
        self._picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)

    def begin(self, seed: int, skill: int) -> None:
        """A new episode."""
        self._next = seed, skill
        self._waiting.clear()

    def act(self, row: Sequence[float], tics: int) -> None:
        """What the agent did."""
        self._waiting.append((row, tics))

    def picture(self) -> np.ndarray:
        """The moment as it is now; after an end the last one before it."""
        engine, game = self._engine, self._engine.game
        if self._next is not None:
            engine.begin(*self._next)
            self._next = None
        for row, tics in self._waiting:
            if not game.is_episode_finished():
                game.make_action(list(row), tics)
        self._waiting.clear()
        state = game.get_state()
        if state is not None:
            self._picture = state.screen_buffer
        return self._picture

    def close(self) -> None:
        """End the engine."""
        self._engine.close()
