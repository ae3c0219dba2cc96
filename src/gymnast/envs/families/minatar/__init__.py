"""MinAtar: five small versions of Atari games, with exact state and seeded resets that repeat themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gymnast.envs.families.family import Family, Package, Snapshot
from gymnast.envs.keyboard import Buttons

if TYPE_CHECKING:
    import gymnasium as gym
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.keyboard import Controls, KeyMap

GAMES = "gymnast.envs.families.minatar.games"
"""The module that imports the package."""

EVERY_ACTION = ("no-op", "left", "up", "right", "down", "fire")
"""Of the console, in the package's order; a minimal set has those that its game uses."""
KEYS = {"left": "left", "right": "right", "up": "up", "down": "down", "space": "fire"}


def _keyboard(controls: Controls) -> KeyMap | None:
    """By the labels of the actions; only the preset knows those of a minimal set."""
    labels = controls.labels or EVERY_ACTION
    if len(labels) != int(controls.space.n):  # type: ignore[attr-defined]
        return None
    return Buttons(KEYS, [frozenset({label} - {"no-op"}) for label in labels])


def _prepare(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    from gymnast.envs.families.minatar.games import prepare

    return prepare(spec)


def _snapshot(env: gym.Env) -> Snapshot | None:
    from gymnast.envs.families.minatar.games import MinAtarEnv, load, save

    if isinstance(env.unwrapped, MinAtarEnv):
        return Snapshot(save, load)
    return None


MINATAR = Family(
    name="minatar",
    title="MinAtar",
    prefixes=("MinAtar/",),
    homes=("minatar", GAMES),
    registers=GAMES,
    package=Package("minatar", "minatar", extra="minatar"),
    prepare=_prepare,
    step_milliseconds=0.01,
    snapshot=_snapshot,
    former_classes={"gymnast.envs.families.minatar.MinAtarEnv": f"{GAMES}.MinAtarEnv"},
    draws_anywhere=True,
    keyboard=_keyboard,
)
