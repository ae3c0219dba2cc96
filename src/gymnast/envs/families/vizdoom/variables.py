"""What the game counts: the agent's extra inputs by their names in ViZDoom, and what stands in every step's `info`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnast.envs.families.vizdoom.scenario import package
from gymnast.errors import ConfigError, did_you_mean

INFO = {
    "kills": "KILLCOUNT",
    "items": "ITEMCOUNT",
    "secrets": "SECRETCOUNT",
    "hits": "HITCOUNT",
    "damage": "DAMAGECOUNT",
    "hits_taken": "HITS_TAKEN",
    "damage_taken": "DAMAGE_TAKEN",
    "dead": "DEAD",
    "health": "HEALTH",
    "armor": "ARMOR",
    "weapon": "SELECTED_WEAPON",
    "ammo": "SELECTED_WEAPON_AMMO",
    "position_x": "POSITION_X",
    "position_y": "POSITION_Y",
    "position_z": "POSITION_Z",
    "angle": "ANGLE",
}
"""Keys of `info`, and the game variables they are. Deaths and frags are left out: the engine counts them from its own start."""
EVENTS = ("kills", "items", "secrets", "hits", "damage", "hits_taken", "damage_taken", "dead")
COUNTERS = frozenset(INFO[key] for key in EVENTS)
"""What is counted from the beginning of an episode. The engine may still show what the last tic of the episode before added."""


def check_variables(names: Sequence[str]) -> None:
    """Refuse what is no game variable."""
    known = package().GameVariable.__members__
    for name in names:
        if name not in known:
            raise ConfigError(
                f"env.kwargs.variables names '{name}', which is no game variable.{did_you_mean(name, known)} Among them are "
                "HEALTH, ARMOR, AMMO2, SELECTED_WEAPON_AMMO, KILLCOUNT, POSITION_X and ANGLE."
            )


def members(names: Sequence[str]) -> list[Any]:
    """ViZDoom's own objects for these names."""
    known = package().GameVariable.__members__
    return [known[name] for name in names]
