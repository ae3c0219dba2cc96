"""Charts as SVG, written by hand: no package is needed, and a report has its curves within a few milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from gymnast.metrics.charts.chart import PALETTE, Chart, Line, Numbers, ticks

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
SIZE, SMALL = 13, 11
"""Heights of text."""
DIGIT, LETTER = 6.4, 6.1
"""Average widths in small text; a browser's fonts differ by a few percent."""
LEGEND_ROW = 16
PAPER = "#ffffff"
FOOT = 44
"""Room for the numbers and the name of the axis."""


@dataclass(frozen=True)
class _Frame:
    """The plot's own rectangle and the ends of its axes."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        low, high = self.x
        return self.left + (value - low) / max(high - low, 1e-300) * self.width

    def down(self, value: float) -> float:
        low, high = self.y
        return self.top + (high - value) / max(high - low, 1e-300) * self.height


def document(charts: Sequence[Chart], *, columns: int = 2, width: float = 560, height: float = 340) -> str:
    """One SVG file with all charts side by side, on white paper."""
    columns = max(1, min(columns, len(charts)))
    rows = math.ceil(len(charts) / columns)
    size = f'width="{columns * width:g}" height="{rows * height:g}"'
    box = f'viewBox="0 0 {columns * width:g} {rows * height:g}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} font-family="{FONT}" color="#222">']
    parts.append(f'<rect width="100%" height="100%" fill="{PAPER}"/>')
    for number, chart in enumerate(charts):
        x, y = number % columns * width, number // columns * height
        parts.append(f'<g transform="translate({x:g} {y:g})">{body(chart, width, height)}</g>')
    return "\n".join([*parts, "</svg>\n"])


def inline(chart: Chart, width: float = 560, height: float = 320) -> str:
    """The chart for a web page, in the page's own colour of text; its width follows the page."""
    label = escape(f"{chart.title}, over {chart.x_label}", quote=True)
    return (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">'
        f"{body(chart, width, height)}</svg>"
    )


def body(chart: Chart, width: float, height: float) -> str:
    """All that is inside the picture."""
    legend = _legend(chart, width)
    foot = FOOT + LEGEND_ROW * len(legend)
    y_range = chart.y_range()
    scale = ticks(*y_range, 5)
    left = 22 + DIGIT * max((len(label) for label in scale.labels), default=1) + SMALL
    frame = _Frame(left, 30, width - left - 16, height - 30 - foot, chart.x_range(), y_range)
    parts = [_text(chart.title, left, 19, size=SIZE, weight=600)]
    for place, label in zip(scale.places, scale.labels):
        y = frame.down(place)
        parts.append(_rule(frame.left, y, frame.left + frame.width, y, opacity=0.13))
        parts.append(_text(label, frame.left - 6, y + 4, anchor="end"))
    parts += _x_axis(chart, frame)
    parts.append(
        f'<text transform="translate({SMALL + 3} {frame.top + frame.height / 2:.1f}) rotate(-90)" font-size="{SMALL}" '
        f'fill="currentColor" text-anchor="middle">{escape(chart.y_label)}</text>'
    )
    if chart.threshold is not None:
        y = frame.down(chart.threshold)
        parts.append(_rule(frame.left, y, frame.left + frame.width, y, opacity=0.75, dashes="5 4"))
    parts += [_band(line, frame) for line in chart.lines if line.low is not None]
    parts += [_curve(line, frame) for line in chart.lines]
    top = frame.top + frame.height + FOOT + 5
    for row, entries in enumerate(legend):
        parts += [entry.drawn(top + row * LEGEND_ROW) for entry in entries]
    return "".join(parts)


def _x_axis(chart: Chart, frame: _Frame) -> list[str]:
    bottom = frame.top + frame.height
    parts = [_rule(frame.left, bottom, frame.left + frame.width, bottom, opacity=0.6)]
    scale = ticks(*frame.x, max(2, int(frame.width / 75)))
    for place, label in zip(scale.places, scale.labels):
        x = frame.across(place)
        parts.append(_rule(x, bottom, x, bottom + 4, opacity=0.6))
        parts.append(_text(label, x, bottom + 16, anchor="middle"))
    parts.append(_text(chart.x_label, frame.left + frame.width, bottom + 29, anchor="end"))
    return parts


def _band(line: Line, frame: _Frame) -> str:
    assert line.low is not None and line.high is not None
    known = np.isfinite(line.low) & np.isfinite(line.high)
    there = _points(line.x[known], line.high[known], frame)
    back = _points(line.x[known][::-1], line.low[known][::-1], frame)
    return f'<polygon points="{there} {back}" fill="{_colour(line)}" fill-opacity="0.18" stroke="none"/>'


def _curve(line: Line, frame: _Frame) -> str:
    known = np.isfinite(line.x) & np.isfinite(line.y)
    x, y = line.x[known], line.y[known]
    if len(x) == 1:
        return f'<circle cx="{frame.across(x[0]):.1f}" cy="{frame.down(y[0]):.1f}" r="3" fill="{_colour(line)}"/>'
    style = 'stroke-width="1" stroke-opacity="0.3"' if line.faint else 'stroke-width="1.8"'
    return (
        f'<polyline points="{_points(x, y, frame)}" fill="none" stroke="{_colour(line)}" {style} '
        'stroke-linejoin="round" stroke-linecap="round"/>'
    )


def _points(x: Numbers, y: Numbers, frame: _Frame) -> str:
    return " ".join(f"{frame.across(one):.1f},{frame.down(other):.1f}" for one, other in zip(x.tolist(), y.tolist()))


def _colour(line: Line) -> str:
    return PALETTE[line.colour % len(PALETTE)]


# ---- text and rules ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entry:
    """An entry of the legend and where it begins."""

    label: str
    x: float
    stroke: str

    @property
    def width(self) -> float:
        return 28 + LETTER * len(self.label)

    def drawn(self, y: float) -> str:
        line = f'<line x1="{self.x:.1f}" y1="{y - 4:.1f}" x2="{self.x + 18:.1f}" y2="{y - 4:.1f}" {self.stroke}/>'
        if not self.stroke:
            return _text(self.label, self.x, y, opacity=0.7)
        return line + _text(self.label, self.x + 23, y)


def _legend(chart: Chart, width: float) -> list[list[_Entry]]:
    """Entries in as many rows as they need."""
    wanted = [(line.label, f'stroke="{_colour(line)}" stroke-width="2.5"') for line in chart.legend]
    if chart.threshold is not None and chart.threshold_label:
        wanted.append(
            (
                chart.threshold_label,
                'stroke="currentColor" stroke-opacity="0.75" stroke-dasharray="5 4" stroke-width="1.2"',
            )
        )
    if chart.note:
        wanted.append((chart.note, ""))
    rows: list[list[_Entry]] = []
    x = math.inf
    for label, stroke in wanted:
        entry = _Entry(label, x, stroke)
        if x + entry.width > width - 10:
            rows.append([])
            entry = _Entry(label, 14.0, stroke)
        rows[-1].append(entry)
        x = entry.x + entry.width + 12
    return rows


def _text(
    words: str, x: float, y: float, *, size: int = SMALL, anchor: str = "start", weight: int = 400, opacity: float = 1.0
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="currentColor" fill-opacity="{opacity:g}">{escape(words)}</text>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float, *, opacity: float, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="currentColor" stroke-opacity="{opacity:g}"{dashed}/>'
