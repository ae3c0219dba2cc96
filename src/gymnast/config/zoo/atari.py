"""Stable-Baselines3's AtariWrapper, and ids of Atari games, as our `env.atari`."""

from __future__ import annotations

import re
from typing import Any

from gymnast.config.atari import PREFIX, AtariConfig
from gymnast.config.policy_kwargs import read_switch
from gymnast.errors import ConfigError

WRAPPER = "stable_baselines3.common.atari_wrappers.AtariWrapper"
LOST_LIFE = "After a lost life SB3 presses FIRE and begins a new stack of frames; here the game just goes on."
_OURS = {"noop_max": "noops", "frame_skip": "skip", "action_repeat_probability": "sticky"}
_SWITCHES = ("terminal_on_life_loss", "clip_reward")


def atari_settings(arguments: Any) -> tuple[dict[str, Any], bool]:
    """The `env.atari` section of an AtariWrapper with these arguments, and whether it clips rewards."""
    known = {*_OURS, *_SWITCHES, "screen_size"}
    if not isinstance(arguments, dict) or not set(arguments) <= known:
        raise ConfigError(f"{WRAPPER} cannot have the arguments {arguments!r} in gymnast")
    life, clip = (read_switch(arguments.get(key, True), key) for key in _SWITCHES)
    size = arguments.get("screen_size", 84)
    section = AtariConfig(sticky=0.0, stack=1, life_loss="terminal" if life else "ignore").model_dump(mode="json")
    section["size"] = [size, size]
    return section | {_OURS[key]: value for key, value in arguments.items() if key in _OURS}, clip


def atari_id(asked: str) -> str:
    """`ALE/Pong-v5` for PongNoFrameskip-v4: the same game, and `env.atari` says how it is played."""
    found = re.fullmatch(r"(?:ALE/)?([A-Za-z0-9]+?)(?:NoFrameskip-v\d+|-v5)", asked)
    if not found or not (asked.startswith(PREFIX) or "NoFrameskip" in asked):
        raise ConfigError(
            f"AtariWrapper is for Atari games, ids like PongNoFrameskip-v4 or {PREFIX}Pong-v5 (got {asked})"
        )
    return f"{PREFIX}{found[1]}-v5"
