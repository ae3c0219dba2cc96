"""Actions in words: by the labels of the env's spec, else as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnast.config.spec import EnvSpec

MOST_NUMBERS = 6


def action_label(action: Any, spec: EnvSpec) -> str:
    """`push left`; `action 3` without labels; `main engine +0.52, side engine -0.10` for continuous ones."""
    if isinstance(action, (list, tuple)):
        return _several(action, spec)
    if isinstance(action, float) and not action.is_integer():
        return f"{action:+.2f}"
    number = int(action)
    if 0 <= number < len(spec.actions):
        return spec.actions[number]
    return f"action {number}"


def _several(action: Sequence[Any], spec: EnvSpec) -> str:
    names = [component.name for component in spec.action_components]
    numbers = [_number(one) for one in action]
    if len(names) == len(numbers):
        numbers = [f"{name} {number}" for name, number in zip(names, numbers)]
    if len(numbers) > MOST_NUMBERS:
        return ", ".join([*numbers[:MOST_NUMBERS], "..."])
    return ", ".join(numbers)


def _number(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + " ".join(_number(one) for one in value) + ")"
    if isinstance(value, float):
        return f"{value:+.2f}"
    return str(value)
