"""Doom through ViZDoom (ENV-4): the package's scenarios and WADs of one's own, as an env on the bare engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gymnast.envs.families.family import Family, Package, Rules
from gymnast.envs.families.parameters import attribute
from gymnast.envs.keyboard import Buttons

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.keyboard import Controls, KeyMap

HOME = "gymnast.envs.families.vizdoom"

TURNING = {"left": "TURN_LEFT", "right": "TURN_RIGHT", "a": "MOVE_LEFT", "d": "MOVE_RIGHT"}
SIDESTEPPING = {"left": "MOVE_LEFT", "right": "MOVE_RIGHT"}
"""The arrows where a scenario has no buttons to turn."""
KEYS = {
    "up": "MOVE_FORWARD",
    "down": "MOVE_BACKWARD",
    "space": "ATTACK",
    "e": "USE",
    "shift": "SPEED",
    "x": "SELECT_NEXT_WEAPON",
    "z": "SELECT_PREV_WEAPON",
    **{str(number): f"SELECT_WEAPON{number}" for number in range(1, 8)},
}


def _prepare(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    from gymnast.envs.families.vizdoom.registered import own_spec

    return own_spec(spec)


def _rules(config: EnvConfig) -> Rules | None:
    from gymnast.envs.families.vizdoom.rules import rules_of_game

    return rules_of_game(config)


def _keyboard(controls: Controls) -> KeyMap | None:
    """Each key is a button; a label (`MOVE_LEFT+ATTACK`) is a combination of them."""
    actions = [frozenset(label.split("+")) - {"NOOP"} for label in controls.labels]
    if not actions:
        return None
    used = frozenset().union(*actions)
    arrows = TURNING if used & {"TURN_LEFT", "TURN_RIGHT"} else SIDESTEPPING
    keys = {key: button for key, button in {**arrows, **KEYS}.items() if button in used}
    others = sorted(used - set(keys.values()))
    free = [letter for letter in "fgcvbrtyuiojkl" if letter not in keys]
    return Buttons({**keys, **dict(zip(free, others, strict=False))}, actions)


VIZDOOM = Family(
    name="vizdoom",
    title="ViZDoom",
    prefixes=("Vizdoom",),
    homes=("vizdoom", HOME),
    registers=f"{HOME}.registered",
    package=Package("vizdoom", "vizdoom", extra="vizdoom"),
    prepare=_prepare,
    step_milliseconds=0.5,
    workers_per_core=4,  # an engine is a process of its own, and its worker sleeps while it plays
    preload=(f"{HOME}.game", "vizdoom", "cv2"),
    rules=_rules,
    parameters={
        f"{HOME}.game.VizdoomGame": {"doom_skill": attribute("doom_skill", "how hard the game is", low=1, high=5)}
    },
    draws_anywhere=True,
    keyboard=_keyboard,
)
