"""The ids: ViZDoom's own, and ours for WADs of one's own. All of them are made by our env."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium as gym
import vizdoom.gymnasium_wrapper  # registers its envs  # noqa: F401
from gymnasium.envs.registration import EnvSpec

from gymnast.envs.families.vizdoom import HOME

ENTRY = f"{HOME}.game:VizdoomGame"
OWN = {
    "VizdoomDoom-v1": {"config": "doom.cfg", "wad": "freedoom1.wad", "map": "E1M1"},
}
"""Whole games. Without a WAD the first map of Freedoom, which ships with ViZDoom."""
OUR_NAMES = {"scenario_config_file": "config", "doom_map": "map"}
"""What the package's records call our arguments."""

for _id, _kwargs in OWN.items():
    if _id not in gym.registry:
        gym.register(_id, ENTRY, kwargs=_kwargs, disable_env_checker=True)


def own_spec(spec: EnvSpec) -> EnvSpec:
    """The record to make our env from, instead of the package's."""
    if spec.id in OWN or str(spec.entry_point).startswith(HOME):
        return spec
    kwargs: dict[str, Any] = {OUR_NAMES.get(key, key): value for key, value in spec.kwargs.items()}
    several = kwargs.pop("max_buttons_pressed", 1) == 0 and "MultiBinary" in spec.id
    if several:
        kwargs["actions"] = "multi"
    return dataclasses.replace(spec, entry_point=ENTRY, kwargs=kwargs)
