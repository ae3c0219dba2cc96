"""Charts in a terminal: dots of braille, eight to a character, or plain signs if there is no UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from gymnast.metrics.charts.chart import Chart, Line, Numbers, ticks
from gymnast.metrics.drawing import ASCII, BOLD, DIM, PLAIN, UNICODE, Lines, fit_words, printable

COLOURS = ("cyan", "yellow", "green", "magenta", "red", "blue", "bright_cyan", "white")
SIGNS = "*+ox#@%&"
"""For terminals without UTF-8, one per line of the chart."""
BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the dots of a character: four rows of two."""
HEIGHT = 14
LEAST_WIDTH = 20


def drawn(chart: Chart, width: int, height: int = HEIGHT, *, utf8: bool = True) -> Lines:
    """The chart in so many columns; `height` counts the lines of the plot itself."""
    lines = [[Segment(_fit(chart.title, width, utf8=utf8), BOLD)]]
    low, high = chart.y_range()
    scale = ticks(low, high, max(2, height // 3))
    margin = max((cell_len(label) for label in scale.labels), default=0) + 2
    room = max(LEAST_WIDTH, width - margin)
    canvas = _Canvas(room, height, chart.x_range(), (low, high), utf8=utf8)
    if chart.threshold is not None:
        canvas.level(chart.threshold)
    for line in chart.lines:
        canvas.line(line)
    labels = {canvas.row_of(place): label for place, label in zip(scale.places, scale.labels)}
    bar = "│" if utf8 else "|"
    for row, cells in enumerate(canvas.rows()):
        label = labels.get(row, "")
        lines.append([Segment(f"{label:>{margin - 2}} {bar}", DIM), *cells])
    lines += _foot(chart, room, margin, utf8=utf8)
    lines += _legend(chart, width, utf8=utf8)
    return Lines(lines)


def _foot(chart: Chart, room: int, margin: int, *, utf8: bool) -> list[list[Segment]]:
    """The axis, its numbers, and what it counts."""
    low, high = chart.x_range()
    scale = ticks(low, high, max(2, room // 12))
    rule = [("─" if utf8 else "-")] * room
    words = [" "] * (room + margin)
    for place, label in zip(scale.places, scale.labels):
        column = min(room - 1, round((place - low) / max(high - low, 1e-300) * (room - 1)))
        rule[column] = "┬" if utf8 else "+"
        begin = min(margin + column - len(label) // 2, room + margin - len(label))
        if all(letter == " " for letter in words[max(0, begin - 1) : begin + len(label)]):
            words[begin : begin + len(label)] = label
    corner = "└" if utf8 else "+"
    text = "".join(words).rstrip()
    rest = room + margin - len(text) - 1
    lines = [[Segment(" " * (margin - 1) + corner + "".join(rule), DIM)], [Segment(text, DIM)]]
    label = _fit(chart.x_label, room, utf8=utf8)
    if len(label) + 2 <= rest:
        lines[-1].append(Segment(label.rjust(rest), DIM))
    else:
        lines.append([Segment(" " * margin + label.rjust(room), DIM)])
    return lines


def _legend(chart: Chart, width: int, *, utf8: bool) -> list[list[Segment]]:
    lines = []
    for line in chart.legend:
        sign = "━━"
        if not utf8:
            sign = SIGNS[line.colour % len(SIGNS)] * 2
        lines.append(
            [Segment(f"  {sign} ", _style(line.colour)), Segment(_fit(line.label, width - 5, utf8=utf8), PLAIN)]
        )
    if chart.threshold is not None and chart.threshold_label:
        sign = "┄┄" if utf8 else "--"
        lines.append([Segment(f"  {sign} ", DIM), Segment(_fit(chart.threshold_label, width - 5, utf8=utf8), DIM)])
    if chart.note:
        lines.append([Segment(f"     {_fit(chart.note, width - 5, utf8=utf8)}", DIM)])
    return lines


def _fit(text: str, width: int, *, utf8: bool) -> str:
    if not utf8:
        text = text.replace(" · ", " - ").encode("ascii", "replace").decode()
    return fit_words(printable(text), max(1, width), (UNICODE if utf8 else ASCII).more)


def _style(colour: int) -> Style:
    return Style(color=COLOURS[colour % len(COLOURS)])


class _Canvas:
    """Dots, and which line each character belongs to: the one drawn last."""

    def __init__(self, columns: int, rows: int, x: tuple[float, float], y: tuple[float, float], *, utf8: bool) -> None:
        self._utf8 = utf8
        across, down = (2, 4) if utf8 else (1, 1)
        self._x, self._y = x, y
        self._dots = np.zeros((rows * down, columns * across), np.bool_)
        self._owner = np.full((rows, columns), -1)
        self._band = np.full((rows, columns), -1)
        self._level: int | None = None
        self._across, self._down = across, down

    def row_of(self, value: float) -> int:
        """The line of characters at this height."""
        return int(self._heights(np.array([value]))[0]) // self._down

    def level(self, value: float) -> None:
        """A dashed line at this height."""
        self._level = self.row_of(value)

    def line(self, line: Line) -> None:
        """Draw a line and, behind all lines, its band."""
        x, y = self._at(line.x, line.y)
        if line.low is not None and line.high is not None:
            self._fill(line, line.low, line.high)
        for place in range(len(x)):
            if place and x[place] > x[place - 1]:
                steps = max(x[place] - x[place - 1], abs(y[place] - y[place - 1])) + 1
                across = np.linspace(x[place - 1], x[place], steps).round().astype(int)
                up = np.linspace(y[place - 1], y[place], steps).round().astype(int)
                self._put(across, up, line.colour)
            else:
                self._put(x[place : place + 1], y[place : place + 1], line.colour)

    def _fill(self, line: Line, low: Numbers, high: Numbers) -> None:
        x, bottom = self._at(line.x, low)
        _, top = self._at(line.x, high)
        for column, one, other in zip(x, bottom, top):
            here = self._band[other // self._down : one // self._down + 1, column // self._across]
            here[here < 0] = line.colour

    def _put(self, x: np.ndarray, y: np.ndarray, colour: int) -> None:
        self._dots[y, x] = True
        self._owner[y // self._down, x // self._across] = colour

    def _at(self, x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
        known = np.isfinite(x) & np.isfinite(y)
        low, high = self._x
        width = self._dots.shape[1] - 1
        share = (x[known] - low) / max(high - low, 1e-300)
        return np.clip(share * width, 0, width).round().astype(int), self._heights(y[known])

    def _heights(self, y: Numbers) -> np.ndarray:
        low, high = self._y
        most = self._dots.shape[0] - 1
        found: np.ndarray = np.clip((high - y) / max(high - low, 1e-300) * most, 0, most).round().astype(int)
        return found

    def rows(self) -> Iterator[list[Segment]]:
        """Lines of characters from the top."""
        for row in range(self._owner.shape[0]):
            yield [self._cell(row, column) for column in range(self._owner.shape[1])]

    def _cell(self, row: int, column: int) -> Segment:
        owner, band = int(self._owner[row, column]), int(self._band[row, column])
        if owner >= 0:
            return Segment(self._character(row, column, owner), _style(owner))
        if band >= 0:
            return Segment("░" if self._utf8 else ":", _style(band) + DIM)
        if row == self._level and column % 2 == 0:
            return Segment("┄" if self._utf8 else "-", DIM)
        return Segment(" ")

    def _character(self, row: int, column: int, owner: int) -> str:
        if not self._utf8:
            return SIGNS[owner % len(SIGNS)]
        block = self._dots[row * 4 : row * 4 + 4, column * 2 : column * 2 + 2]
        bits = sum(DOTS[down][across] for down, across in zip(*np.nonzero(block)))
        return chr(BRAILLE + bits)
