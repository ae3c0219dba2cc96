"""Atari games (ENV-3): one game as a Gymnasium env, many games as ALE's vector env, both under the protocol of `env.atari`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gymnast.envs.families.family import Family, Package, Rules, Snapshot
from gymnast.envs.keyboard import Buttons

if TYPE_CHECKING:
    import gymnasium as gym
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.families.family import NativeForm
    from gymnast.envs.keyboard import Controls, KeyMap

HOME = "gymnast.envs.families.atari"

KEYS = {"up": "UP", "down": "DOWN", "left": "LEFT", "right": "RIGHT", "space": "FIRE"}
OTHER_KEYS = {"ALE/Pong": {"up": "RIGHT", "down": "LEFT"}}
"""Games whose stick moves something another way than its name says: in Pong right is up."""


def _prepare(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    from gymnast.envs.families.atari.roms import game_spec

    if config.atari is None:
        return spec
    return game_spec(spec, config.atari)


def _native(config: EnvConfig) -> NativeForm | str:
    from gymnast.envs.families.atari.vector import native_games

    return native_games(config)


def _rules(config: EnvConfig) -> Rules | None:
    from gymnast.envs.families.atari.protocol import AtariRules

    if config.atari is None:
        return None
    return AtariRules(config, config.atari)


def _snapshot(env: gym.Env) -> Snapshot | None:
    from gymnast.envs.families.atari.game import AtariGame, load, save

    bare = env.unwrapped
    if isinstance(bare, AtariGame) and bare.can_be_saved:
        return Snapshot(save, load)
    return None


def _keyboard(controls: Controls) -> KeyMap:
    """Stick and button; a label (`UPRIGHTFIRE`) is a combination of them."""
    others = next((keys for name, keys in OTHER_KEYS.items() if controls.env_id.startswith(name)), {})
    actions = [frozenset(re.findall("UP|DOWN|LEFT|RIGHT|FIRE", label)) for label in controls.labels]
    return Buttons({**KEYS, **others}, actions)


def _randomness(config: EnvConfig) -> str | None:
    if config.atari is None:
        return None
    return "env.atari.sticky=0.25 env.atari.noops=30"


ATARI = Family(
    name="atari",
    title="Atari",
    prefixes=("ALE/",),
    homes=("ale_py", HOME),
    registers="ale_py",
    package=Package("ale_py", "ale-py", extra="atari"),
    prepare=_prepare,
    native=_native,
    native_engine="ALE's vector env",
    step_milliseconds=0.5,
    by_lanes=True,
    preload=(f"{HOME}.game", "ale_py", "cv2"),
    rules=_rules,
    snapshot=_snapshot,
    draws_anywhere=True,
    keyboard=_keyboard,
    randomness=_randomness,
)
