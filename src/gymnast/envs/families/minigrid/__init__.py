"""MiniGrid and BabyAI: grid worlds, with observations that a network can read. State is saved by replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gymnast.envs.families.family import Family, Package
from gymnast.envs.keyboard import Choices, by_id

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig

ENCODING = "gymnast.envs.families.minigrid.encoding"
"""The module that imports the package."""

KEYS = Choices({"left": 0, "right": 1, "up": 2, "a": 3, "d": 4, "space": 5, "enter": 6}, turns=True)
"""Turn, turn, forward, pick up, drop, toggle, done: every env of the package has these actions."""


def _prepare(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    from gymnast.envs.families.minigrid.encoding import prepare

    return prepare(spec)


MINIGRID = Family(
    name="minigrid",
    title="MiniGrid",
    prefixes=("MiniGrid-", "BabyAI-"),
    homes=("minigrid", ENCODING),
    registers=ENCODING,
    package=Package("minigrid", "minigrid", extra="minigrid"),
    prepare=_prepare,
    step_milliseconds=0.05,
    draws_anywhere=True,
    keyboard=by_id({"MiniGrid": KEYS, "BabyAI": KEYS}),
)
