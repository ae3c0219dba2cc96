"""A schedule in words: `linear 0.008 → 0`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNITS = {"env_steps": "env steps", "vec_steps": "vec steps"}


def schedule_words(schedule: Mapping[str, Any]) -> str:
    """How a saved or resolved schedule runs; what is not understood (a damaged file) is said as it is."""
    kind = schedule.get("schedule")
    try:
        if kind == "constant":
            return f"constant {_number(schedule['value'])}"
        if kind == "piecewise":
            return f"piecewise {_points(schedule)}"
        return f"{kind} {_decay(schedule)}"
    except (KeyError, TypeError, ValueError):
        rest = ", ".join(f"{key} {value}" for key, value in schedule.items() if key != "schedule" and value is not None)
        return f"{kind}: {rest}"


def _decay(schedule: Mapping[str, Any]) -> str:
    words = f"{_number(schedule['start'])} → {_number(schedule.get('end') or 0.0)}"
    axis, begin, end = schedule.get("axis", "progress"), schedule.get("decay_start") or 0.0, schedule.get("decay_end")
    if axis != "progress" or begin or end is not None:
        finish = "the end"
        if end is not None:
            finish = _place(end, axis)
        words += f" from {_place(begin, axis)} to {finish}"
    if schedule.get("floor") is not None:
        words += f", at least {_number(schedule['floor'])}"
    return words


def _points(schedule: Mapping[str, Any]) -> str:
    axis = schedule.get("axis", "progress")
    points = [f"{_number(value)} at {_place(place, axis)}" for place, value in schedule["points"]]
    arrow = ", "
    if schedule.get("interpolate") == "linear":
        arrow = " → "
    words = arrow.join(points)
    if schedule.get("floor") is not None:
        words += f", at least {_number(schedule['floor'])}"
    if schedule.get("reset_optimizer"):
        words += ", the optimizer begins anew at each"
    return words


def _place(place: float, axis: str) -> str:
    """Where on the axis: a share of the budget, or steps."""
    if axis in UNITS:
        return f"{place:,.0f} {UNITS[axis]}"
    return f"{100 * place:g} %"


def _number(value: float) -> str:
    """Short where that says the same number."""
    short = f"{value:g}"
    if float(short) == value:
        return short
    return repr(value)
