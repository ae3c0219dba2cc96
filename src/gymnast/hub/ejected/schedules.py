"""Hyperparameters in the script: a constant, or a small function of the clock whose value is handed on as an argument."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gymnast.config.schedule import Constant, Cosine, Exponential, Linear, Piecewise, Schedule
from gymnast.hub.ejected.template import literal


@dataclass
class Settings:
    """Numbers by name, and which of them change during training."""

    constants: dict[str, float] = field(default_factory=dict)
    schedules: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, value: float | Schedule) -> None:
        """Take one hyperparameter in."""
        if isinstance(value, Constant):
            value = value.value
        if isinstance(value, (int, float)):
            self.constants[name] = value
        else:
            self.schedules[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.constants or name in self.schedules

    def name(self, name: str) -> str:
        """How the script's functions refer to it."""
        if name in self.schedules:
            return name
        return name.upper()

    def arguments(self, *names: str) -> str:
        """`, name: float` for each that is scheduled."""
        return "".join(f", {name}: float" for name in names if name in self.schedules)

    def passed(self, *names: str) -> str:
        """`, name` for each that is scheduled."""
        return "".join(f", {name}" for name in names if name in self.schedules)

    def now(self, *names: str) -> str:
        """`, name_at(clock)` for each that is scheduled."""
        return "".join(f", {name}_at({self.schedules[name].axis})" for name in names if name in self.schedules)

    def axes(self) -> set[str]:
        """The clocks that are read."""
        return {schedule.axis for schedule in self.schedules.values()}

    def jumps(self) -> list[str]:
        """Source of the segment index of each schedule that asks for an optimizer reset at its jumps."""
        return [
            f"max(0, sum({s.axis} >= at for at in {literal(tuple(at for at, _ in s.points))}) - 1)"
            for s in self.schedules.values()
            if isinstance(s, Piecewise) and s.reset_optimizer
        ]

    def functions(self) -> str:
        """The schedules as functions."""
        if not self.schedules:
            return ""
        head = "# ---- schedules: read once per iteration, before it ".ljust(119, "-")
        return head + "\n" + "\n\n".join(_function(name, s) for name, s in self.schedules.items()) + "\n\n"


def _function(name: str, schedule: Any) -> str:
    if isinstance(schedule, Piecewise):
        body = _piecewise(schedule)
    else:
        body = _decay(schedule)
    return f"def {name}_at({schedule.axis}: float) -> float:\n" + "".join(f"    {line}\n" for line in body)


def _decay(schedule: Any) -> list[str]:
    start, end = schedule.start, schedule.end
    kinds = {Linear: "Straight line", Cosine: "Half a cosine", Exponential: "Constant ratio per step"}
    lines = [f'"""{kinds[type(schedule)]} from {start:g} to {end:g}."""']
    fraction, first = schedule.axis, schedule.decay_start
    last = 1.0 if schedule.decay_end is None else schedule.decay_end
    if schedule.axis != "progress" or (first, last) != (0.0, 1.0):
        lines.append(f"fraction = min(1.0, max(0.0, ({schedule.axis} - {first!r}) / ({last!r} - {first!r})))")
        fraction = "fraction"
    if isinstance(schedule, Linear):
        # a + (0 − a)·f and a − a·f are the same to the bit.
        if end == 0:
            value = f"{start!r} - {start!r} * {fraction}"
        else:
            value = f"{start!r} + ({end!r} - {start!r}) * {fraction}"
    elif isinstance(schedule, Cosine):
        value = f"{end!r} + ({start!r} - {end!r}) * 0.5 * (1.0 + math.cos(math.pi * {fraction}))"
    else:
        value = f"{start!r} * ({end!r} / {start!r}) ** {fraction}"
    return [*lines, _returned(value, schedule.floor)]


def _piecewise(schedule: Piecewise) -> list[str]:
    lines = [
        '"""Steps between points."""' if schedule.interpolate == "step" else '"""Straight lines between points."""',
        f"points = {literal(schedule.points)}",
        f"i = max(0, sum({schedule.axis} >= at for at, _ in points) - 1)",
    ]
    if schedule.interpolate == "step":
        return [*lines, _returned("points[i][1]", schedule.floor)]
    line = f"y0 + (y1 - y0) * max(0.0, ({schedule.axis} - x0) / (x1 - x0))"
    return [
        *lines,
        "if i + 1 == len(points):",
        f"    {_returned('points[i][1]', schedule.floor)}",
        "(x0, y0), (x1, y1) = points[i], points[i + 1]",
        _returned(line, schedule.floor),
    ]


def _returned(value: str, floor: float | None) -> str:
    if floor is None:
        return f"return {value}"
    return f"return max({value}, {floor!r})"
