"""What a chart shows, whoever draws it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6b6b")
"""Okabe and Ito's colours, which people with any colour vision tell apart, on white and on dark grey."""
MARGIN = 0.04
"""Share of the height that is left free above and below all lines."""


@dataclass(frozen=True, eq=False)
class Line:
    """One line, with a band around it if it summarises several runs."""

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    faint: bool = False
    """The numbers behind a smoothed line: drawn thin, and not in the legend."""
    colour: int = 0
    """Which colour of the palette."""


@dataclass(frozen=True, eq=False)
class Chart:
    """Lines over one axis."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    threshold: float | None = None
    """A level that is marked by a dashed line."""
    threshold_label: str = ""
    note: str = ""
    """What bands and lines are, in a few words."""

    @property
    def legend(self) -> list[Line]:
        """One line per entry of the legend; a single line that is called like its chart needs none."""
        named = [line for line in self.lines if not line.faint]
        if len(named) == 1 and named[0].label == self.title:
            return []
        return named

    def x_range(self) -> tuple[float, float]:
        """From the first to the last point."""
        return _range(line.x for line in self.lines)

    def y_range(self) -> tuple[float, float]:
        """All lines, bands and the threshold, with a little air; a flat line lies in the middle."""
        low, high = _range(part for line in self.lines for part in (line.y, line.low, line.high) if part is not None)
        if self.threshold is not None:
            low, high = min(low, self.threshold), max(high, self.threshold)
        if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
            half = max(abs(low) * 0.05, 0.5 if low == 0 else 0.0, 1e-9)
            return low - half, high + half
        air = (high - low) * MARGIN
        return low - air, high + air


def _range(parts: Iterator[Numbers]) -> tuple[float, float]:
    """The smallest and the largest finite number."""
    ends = [(float(np.min(good)), float(np.max(good))) for part in parts if (good := part[np.isfinite(part)]).size]
    if not ends:
        return 0.0, 1.0
    return min(low for low, _ in ends), max(high for _, high in ends)


# ---- ticks ---------------------------------------------------------------------------------------------------------

NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
SHORTEN_FROM = 10_000


@dataclass(frozen=True)
class Ticks:
    """Places on an axis and their labels."""

    places: tuple[float, ...]
    labels: tuple[str, ...]


def ticks(low: float, high: float, most: int) -> Ticks:
    """At most about so many round numbers between two ends, labelled alike: `0 20k 40k`."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return Ticks((low,), (f"{low:g}",))
    raw = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(nice * power for nice in NICE if nice * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = tuple(number * step for number in range(first, last + 1))
    largest = max((abs(place) for place in places), default=0.0)
    return Ticks(places, tuple(_label(place, step, largest) for place in places))


def _label(place: float, step: float, largest: float) -> str:
    """With as many decimals as the step asks for, so that neighbours look alike."""
    if abs(place) < step * 1e-9:
        return "0"
    if largest >= SHORTEN_FROM:
        size, unit = next((size, unit) for size, unit in UNITS if largest >= size)
        return f"{_decimals(place / size, step / size)}{unit}"
    if largest < 1e-3:
        return f"{place:.3g}"
    return _decimals(place, step)


def _decimals(value: float, step: float) -> str:
    digits = 0
    while digits < 9 and abs(round(step, digits) - step) > step * 1e-6:
        digits += 1
    return f"{value:.{digits}f}"
