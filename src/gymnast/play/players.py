"""Who acts: a person by keys, or chance. A policy is a player as well (`gymnast.play.policy`), which alone needs torch."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from gymnasium import spaces

from gymnast.envs.actions import executed, layout, random_actions
from gymnast.envs.keyboard import KeyMap, Keys
from gymnast.envs.vector import StepRow
from gymnast.envs.wrappers.masks import is_possible

HUMAN, RANDOM, POLICY = "human", "random", "policy"


class Move(NamedTuple):
    """What a player does in one step."""

    actions: np.ndarray
    """As the stage takes them: [1, ...]."""
    value: float | None = None
    """What the player expects from here, where it knows."""
    probabilities: np.ndarray | None = None
    """Of each action, if there is one discrete choice."""


class Player(Protocol):
    """Plays one episode after the other on one env.

    An env with two seats has one player, too: it asks one per seat and puts their actions side by side.
    """

    def begin(self, seed: int) -> None:
        """A new episode; everything random in how it is played comes from this seed."""

    def move(self, row: StepRow, keys: Keys) -> Move | None:
        """What to do now, with the keys that are down; None waits for others."""


class ImpossibleError(Exception):
    """The keys ask for an action that the env's mask forbids now."""


class Person:
    """Plays by a key map."""

    def __init__(self, keys: KeyMap, space: spaces.Space) -> None:
        self.keys = keys
        self._space = space
        self._shape, self._dtype = layout(space)

    def begin(self, seed: int) -> None:
        """Nothing is random here."""

    def move(self, row: StepRow, keys: Keys) -> Move | None:
        """What the keys make. Numbers that wrappers add to the action stay 0: the shortest repetition, for instance."""
        numbers = self.keys.action(keys)
        if numbers is None:
            return None
        action = np.zeros(max(1, int(np.prod(self._shape))), np.float64)
        action[: len(numbers)] = numbers
        actions = action.reshape(1, *self._shape).astype(self._dtype)
        if row.mask is not None and not is_possible(executed(actions[0], self._space), row.mask[0], self._space):
            raise ImpossibleError
        return Move(actions)


class Chance:
    """Plays uniformly at random, under the env's mask."""

    def __init__(self, space: spaces.Space) -> None:
        self._space = space
        self._random = np.random.default_rng(0)

    def begin(self, seed: int) -> None:
        """Equal seeds, equal play."""
        self._random = np.random.default_rng(seed)

    def move(self, row: StepRow, keys: Keys) -> Move:
        """Draw any action that is possible now."""
        return Move(random_actions(self._space, 1, self._random, row.mask))
