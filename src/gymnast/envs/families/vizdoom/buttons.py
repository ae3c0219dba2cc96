"""From Doom's buttons to actions: combinations that are possible, or one choice per group of buttons that exclude each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from gymnast.envs.families.vizdoom.scenario import package
from gymnast.envs.families.vizdoom.settings import VizdoomSettings
from gymnast.errors import ConfigError, did_you_mean

NOOP = "NOOP"
"""The label of the action that presses nothing."""
DELTA = "_DELTA"
OPPOSITES = (
    ("MOVE_LEFT", "MOVE_RIGHT"),
    ("MOVE_FORWARD", "MOVE_BACKWARD"),
    ("TURN_LEFT", "TURN_RIGHT"),
    ("LOOK_UP", "LOOK_DOWN"),
    ("MOVE_UP", "MOVE_DOWN"),
    ("JUMP", "CROUCH"),
    ("SELECT_NEXT_ITEM", "SELECT_PREV_ITEM"),
    ("SELECT_NEXT_WEAPON", "SELECT_PREV_WEAPON", *(f"SELECT_WEAPON{number}" for number in range(10))),
)
"""Buttons that cancel each other, or of which the game obeys one."""
SAME_AS_DELTA = {
    "MOVE_LEFT_RIGHT_DELTA": "MOVE_LEFT",
    "MOVE_FORWARD_BACKWARD_DELTA": "MOVE_FORWARD",
    "TURN_LEFT_RIGHT_DELTA": "TURN_LEFT",
    "LOOK_UP_DOWN_DELTA": "LOOK_UP",
    "MOVE_UP_DOWN_DELTA": "MOVE_UP",
}
"""A delta button, and the one that does the same step by step: where there is that one, combinations leave the delta out."""
ALONE = ("SELECT_", "USE", "RELOAD", "TURN180", "DROP_", "ACTIVATE_")
"""Buttons that combinations do not combine, by how they begin: together with others they do nothing more."""
LEFT_OUT = ("SPEED", "STRAFE")
"""Buttons that change what others do, and would double the number of combinations."""
MOST_ACTIONS = 1000
Press = tuple[str, float]
"""A button, and by how much: 1 for all but delta buttons."""


@dataclass(frozen=True)
class ActionSet:
    """What the agent can do, and what the engine is given for it."""

    space: spaces.Discrete | spaces.MultiDiscrete
    buttons: tuple[str, ...]
    """The engine's buttons, in the order of a row."""
    labels: tuple[str, ...]
    """Of discrete actions; empty for `multi`."""
    groups: tuple[tuple[str, ...], ...]
    """The labels of each number of a `multi` action."""
    rows: tuple[tuple[tuple[float, ...], ...], ...]
    """What each choice presses: one table for discrete actions, one per number otherwise."""

    def row(self, action: int | np.ndarray) -> Sequence[float]:
        """What the engine is given."""
        if self.labels:
            return self.rows[0][int(action)]
        chosen = [table[choice] for table, choice in zip(self.rows, np.asarray(action).tolist(), strict=True)]
        return [sum(column) for column in zip(*chosen, strict=True)]


def action_set(settings: VizdoomSettings, scenario_buttons: Sequence[str]) -> ActionSet:
    """What `env.kwargs` make of the buttons of a scenario."""
    buttons = list(scenario_buttons if settings.buttons is None else settings.buttons)
    _check_names(buttons, "env.kwargs.buttons")
    if not buttons and not isinstance(settings.actions, list):
        raise ConfigError("The game has no buttons: name some (env.kwargs.buttons=[MOVE_LEFT,MOVE_RIGHT,ATTACK]).")
    if settings.actions == "multi":
        return _multi(buttons, settings.delta)
    if isinstance(settings.actions, list):
        presses = _named(settings.actions)
    else:
        presses = _combinations(buttons, settings)
    used = dict.fromkeys(button for action in presses for button, _ in action)
    return _discrete(presses, tuple(dict.fromkeys([*buttons, *used])))


def _discrete(presses: list[tuple[Press, ...]], buttons: tuple[str, ...]) -> ActionSet:
    labels = tuple("+".join(_label(press) for press in action) or NOOP for action in presses)
    table = tuple(_row(action, buttons) for action in presses)
    return ActionSet(spaces.Discrete(len(presses)), buttons, labels, (), (table,))


def _row(action: Sequence[Press], buttons: Sequence[str]) -> tuple[float, ...]:
    amounts = dict(action)
    return tuple(amounts.get(button, 0.0) for button in buttons)


def _label(press: Press) -> str:
    button, amount = press
    return f"{button}={amount:g}" if button.endswith(DELTA) else button


def _combinations(buttons: list[str], settings: VizdoomSettings) -> list[tuple[Press, ...]]:
    """Nothing, every button, and as many together as go together."""
    single = _presses(buttons, settings.delta)
    free = [press for press in single if not press[0].startswith(ALONE)]
    found: list[tuple[Press, ...]] = [(), *((press,) for press in single)]
    for size in range(2, settings.most_buttons + 1):
        found += [combination for combination in itertools.combinations(free, size) if not _conflict(combination)]
        if len(found) > MOST_ACTIONS:
            raise ConfigError(
                f"Combinations of {settings.most_buttons} of {len(free)} buttons are more than {MOST_ACTIONS} actions: lower "
                "env.kwargs.most_buttons, name fewer buttons, or set env.kwargs.actions=multi."
            )
    return found


def _presses(buttons: Sequence[str], delta: float) -> list[Press]:
    """Every way to press one button that combinations use."""
    found: list[Press] = []
    for button in buttons:
        if button.endswith(DELTA):
            if SAME_AS_DELTA[button] not in buttons:
                found += [(button, -delta), (button, delta)]
        elif button not in LEFT_OUT or len(buttons) == 1:
            found.append((button, 1.0))
    return found


def _conflict(presses: Sequence[Press]) -> tuple[str, str] | None:
    """Two buttons that do not go together."""
    names = [button for button, _ in presses]
    for first, second in itertools.combinations(names, 2):
        if first == second or any(first in group and second in group for group in OPPOSITES):
            return first, second
        if SAME_AS_DELTA.get(first, "") in _group(second) or SAME_AS_DELTA.get(second, "") in _group(first):
            return first, second
    return None


def _group(button: str) -> tuple[str, ...]:
    return next((group for group in OPPOSITES if button in group), (button,))


def _named(labels: Sequence[str]) -> list[tuple[Press, ...]]:
    """The actions that a list of labels stands for."""
    if not labels:
        raise ConfigError("env.kwargs.actions is an empty list: name at least one action, e.g. [NOOP, ATTACK].")
    presses = [() if label == NOOP else tuple(_press(part, label) for part in label.split("+")) for label in labels]
    for label, action in zip(labels, presses, strict=True):
        if pair := _conflict(action):
            raise ConfigError(
                f"env.kwargs.actions has '{label}', but {pair[0]} and {pair[1]} cancel each other: leave one out."
            )
    for earlier, later in itertools.combinations(range(len(presses)), 2):
        if set(presses[earlier]) == set(presses[later]):
            raise ConfigError(f"env.kwargs.actions has '{labels[earlier]}' and '{labels[later]}', which are the same.")
    return presses


def _press(part: str, label: str) -> Press:
    button, _, amount = part.partition("=")
    _check_names([button], f"env.kwargs.actions ('{label}')")
    if not button.endswith(DELTA):
        if amount:
            raise ConfigError(
                f"env.kwargs.actions has '{label}', but {button} is pressed or not: leave '={amount}' out."
            )
        return button, 1.0
    try:
        return button, float(amount)
    except ValueError:
        raise ConfigError(f"env.kwargs.actions has '{label}': say by how much, for example {button}=10.") from None


def _check_names(buttons: Sequence[str], where: str) -> None:
    known = package().Button.__members__
    for button in buttons:
        if button not in known:
            raise ConfigError(
                f"{where} names '{button}', which is no button of Doom.{did_you_mean(button, known)} "
                f"The buttons are {', '.join(known)}."
            )
    if len(set(buttons)) < len(buttons):
        raise ConfigError(f"{where} names a button twice: {', '.join(buttons)}.")


def _multi(buttons: list[str], delta: float) -> ActionSet:
    """One number per group of buttons that exclude each other: none of them, or one."""
    groups: list[list[Press]] = []
    for button in buttons:
        if button.endswith(DELTA):
            if SAME_AS_DELTA[button] not in buttons:
                groups.append([(button, -delta), (button, delta)])
            continue
        mates = _group(button)
        own = next((group for group in groups if group[0][0] in mates), None)
        if own is None:
            groups.append([(button, 1.0)])
        else:
            own.append((button, 1.0))
    tables = tuple(tuple(_row(action, buttons) for action in [(), *((press,) for press in group)]) for group in groups)
    labels = tuple((NOOP, *map(_label, group)) for group in groups)
    return ActionSet(spaces.MultiDiscrete([len(table) for table in tables]), tuple(buttons), (), labels, tables)
