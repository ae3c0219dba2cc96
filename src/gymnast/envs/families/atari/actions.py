"""Buttons by label: the actions a game uses, all 18 of the console, or a list of one's own (ENV-3)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from gymnast.envs.families.atari.roms import ale_py, rom_path
from gymnast.errors import ConfigError, did_you_mean

FIRE = "FIRE"


@dataclass(frozen=True)
class ActionSet:
    """What the agent may press, in the order of its actions."""

    labels: tuple[str, ...]
    codes: tuple[int, ...]
    """ALE's number of each."""
    full: bool
    """Whether there is one that the game itself does not use."""
    indices: tuple[int, ...]
    """The index of each among ALE's own actions: all 18 if `full`, otherwise those the game uses."""
    fires: bool
    """Whether FIRE is among ALE's own actions; the agent itself need not have it."""


def action_set(game: str, actions: str | list[str]) -> ActionSet:
    """What `env.atari.actions` means in this game."""
    everything = tuple(ale_py().Action.__members__)
    minimal = minimal_labels(game)
    if isinstance(actions, str):
        labels = minimal if actions == "minimal" else everything
    else:
        labels = tuple(actions)
    for label in labels:
        if label not in everything:
            raise ConfigError(
                f"env.atari.actions has '{label}', which is no button of '{game}'.{did_you_mean(label, everything)} "
                f"It uses {', '.join(minimal)}; the console also has "
                f"{', '.join(other for other in everything if other not in minimal) or 'no others'}."
            )
    full = actions == "full" or not set(labels) <= set(minimal)
    own = everything if full else minimal
    codes = {label: int(action.value) for label, action in ale_py().Action.__members__.items()}
    return ActionSet(
        labels,
        tuple(codes[label] for label in labels),
        full,
        tuple(own.index(label) for label in labels),
        FIRE in own,
    )


@functools.cache
def minimal_labels(game: str) -> tuple[str, ...]:
    """Labels of the buttons that do something in the game."""
    ale = ale_py().ALEInterface()
    ale.loadROM(rom_path(game))
    return tuple(action.name for action in ale.getMinimalActionSet())
