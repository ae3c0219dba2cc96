"""Object features: where things are on the screen of a game, read from the console's memory (ENV-3).

A game's module has a `MAP`. Values are raw: positions are centres in screen pixels (160×210, y grows downwards), velocities are
pixels per agent step, counted from the observation before. An object that is missing has `visible` 0, position 0 and velocity 0;
one that was missing in the observation before has velocity 0. Every object is in an observation once. The memory of the game's
standard mode and difficulty is described; tests hold each map against the pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium import spaces

from gymnast.config.spec import Component
from gymnast.errors import UsageError, did_you_mean

GAMES = ("breakout", "pong")
"""Games with a map: the modules of this package. One more is a module of its own and its name here."""
WIDTH, HEIGHT = 160.0, 210.0
"""Of the screen."""

ObjectState = tuple[float, ...]
"""Positions at one observation, from which the velocities of the next one are counted; 0 is a missing object."""


@dataclass(frozen=True)
class ObjectMap:
    """How a game's memory becomes an observation."""

    components: tuple[Component, ...]
    """What the values are, in order, and their ranges."""
    read: Callable[[np.ndarray, ObjectState | None], tuple[np.ndarray, ObjectState]]
    """Observation and positions, from the 128 bytes and the positions before (None at the start of an episode)."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each value."""
        return tuple(component.name for component in self.components)

    @cached_property
    def space(self) -> spaces.Box:
        """The values with their ranges."""
        low, high = np.array([(part.low, part.high) for part in self.components], np.float32).T
        return spaces.Box(low, high, dtype=np.float32)


def horizontal(name: str) -> Component:
    """The x of a centre."""
    return Component(name=name, low=0, high=WIDTH, unit="px")


def vertical(name: str) -> Component:
    """The y of a centre."""
    return Component(name=name, low=0, high=HEIGHT, unit="px")


def speed(name: str, extent: float) -> Component:
    """A velocity. Its range holds for every frame skip: nothing moves further than the screen is wide or high."""
    return Component(name=name, low=-extent, high=extent, unit="px/step")


def offset(name: str, extent: float) -> Component:
    """How far one centre is from another; 0 when one of them is missing."""
    return Component(name=name, low=-extent, high=extent, unit="px")


def flag(name: str) -> Component:
    """A component that is 0 or 1."""
    return Component(name=name, low=0, high=1)


def map_of(game: str) -> ObjectMap:
    """The map of a game, given by ALE's name of its ROM (`pong`)."""
    if game not in GAMES:
        raise UsageError(
            f"There are no object features for the game '{game}' (env.atari.obs=objects): the games that have them are "
            f"{', '.join(GAMES)}.{did_you_mean(game, GAMES)} Set env.atari.obs to pixels or ram for every other game."
        )
    from gymnast.envs.families.atari.objects import breakout, pong  # here, for they import this module

    return {"breakout": breakout.MAP, "pong": pong.MAP}[game]
