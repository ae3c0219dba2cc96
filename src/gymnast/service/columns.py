"""The columns of a metrics file that grows: each look reads only what was written since the last one."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gymnast.metrics.sinks.jsonl import AMENDS, NOT_METRICS, STEP, RowOrder, parse_row

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
_SOUND = b'"nonfinite":[]}\n'
"""How a line ends whose numbers are all finite."""
_REMEMBERED = 64
"""Bytes before the place up to which a file was read; others there mean that it is another file."""
NAN = float("nan")


@dataclass
class Column:
    """One metric: the rows that have it, and its values there. Not-finite ones are NaN."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def append(self, row: int, value: float) -> None:
        """The value of a row behind all others."""
        self.rows.append(row)
        self.values.append(value)

    def put(self, row: int, value: float) -> None:
        """The value of any row: what becomes known late."""
        place = bisect_left(self.rows, row)
        if place < len(self.rows) and self.rows[place] == row:
            self.values[place] = value
        else:
            self.rows.insert(place, row)
            self.values.insert(place, value)

    def cut(self, row: int) -> None:
        """Forget this row and all after it."""
        place = bisect_left(self.rows, row)
        del self.rows[place:]
        del self.values[place:]

    def before(self, row: int) -> float | None:
        """The last value of a row before this one."""
        place = bisect_left(self.rows, row)
        if place:
            return self.values[place - 1]
        return None

    def since(self, row: int) -> tuple[Places, Numbers]:
        """Rows and values from this row on, as copies: an array that numpy looks into cannot grow."""
        place = bisect_left(self.rows, row)
        return np.array(self.rows[place:], dtype=np.int64), np.array(self.values[place:], dtype=np.float64)


@dataclass(frozen=True)
class _Layout:
    """The positions of the wanted numbers in a line, so that the others need not be parsed.

    Lines of one attempt have the same keys in the same order; a metric that is logged late makes them longer from there
    on. `begin` holds the attempt's number.
    """

    begin: bytes
    commas: int
    """How many a line has."""
    places: tuple[tuple[int, bytes, Column], ...]
    """Which field, how it begins, and where its number goes."""
    last: int
    """The last field that is looked at."""

    def fits(self, line: bytes) -> bool:
        """Whether a line is likely to be like this."""
        return line.startswith(self.begin) and line.endswith(_SOUND) and line.count(b",") == self.commas

    def numbers(self, line: bytes) -> list[float | None] | None:
        """The env steps of a line, then the wanted numbers; None if the line is not like this."""
        fields = line.split(b",", self.last + 1)
        found: list[float | None] = []
        try:
            found.append(int(fields[2].partition(b":")[2]))
            for place, begin, _ in self.places:
                text = fields[place]
                if not text.startswith(begin):
                    return None
                text = text[len(begin) :]
                found.append(None if text == b"null" else float(text))
        except (ValueError, IndexError):
            return None
        return found


class Columns:
    """The wanted metrics of one file, in memory; the others only by name."""

    def __init__(self, path: Path, wanted: Callable[[str], bool]) -> None:
        self.path = path
        self._wanted = wanted
        self._forget()

    def _forget(self) -> None:
        self.names: dict[str, None] = {}
        """Every metric that the file has, in the order of its first line."""
        self.columns: dict[str, Column] = {}
        self._order = RowOrder()
        self._offset = 0
        self._file: tuple[int, int] | None = None
        self._before = b""
        self._layout: _Layout | None = None

    def __len__(self) -> int:
        return len(self._order.steps)

    def read(self) -> int:
        """Read what is new. Gives the first row that is new or other than before: a resume and an evaluation go back."""
        try:
            with self.path.open("rb") as file:
                self._check(file)
                return self._take_lines(file)
        except FileNotFoundError:  # nothing logged yet
            self._forget()
            return 0

    def _check(self, file: BinaryIO) -> None:
        """Start over unless this is the same file as last time, only longer."""
        found = os.fstat(file.fileno())
        same = self._file == (found.st_dev, found.st_ino) and found.st_size >= self._offset
        if same:
            file.seek(self._offset - len(self._before))
            same = file.read(len(self._before)) == self._before
        if not same:
            self._forget()
            self._file = (found.st_dev, found.st_ino)

    def _take_lines(self, file: BinaryIO) -> int:
        file.seek(self._offset)
        first, line = len(self), b""
        for raw in file:
            if not raw.endswith(b"\n"):  # still being written
                break
            line = raw
            first = min(first, self._take(line))
            self._offset += len(line)
        if line:
            self._before = line[-_REMEMBERED:]
        return first

    def _take(self, line: bytes) -> int:
        """Take one line in; gives the row that it changes."""
        layout = self._layout
        if layout is not None and layout.fits(line):
            numbers = layout.numbers(line)
            if numbers is not None:
                return self._take_numbers(numbers, layout)
        row = parse_row(line)
        if row is None:  # a damaged line
            return len(self)
        if AMENDS in row:
            return self._complete(row)
        place = self._add(row)
        for name, value in _numbers(row).items():
            self.names[name] = None
            if self._wanted(name):
                self.columns.setdefault(name, Column()).append(place, value)
        self.names |= dict.fromkeys(name for name in row if name not in NOT_METRICS)
        self._layout = self._layout_of(line, row)
        return place

    def _take_numbers(self, numbers: list[float | None], layout: _Layout) -> int:
        step, *values = numbers
        place = self._add({STEP: step})
        for value, (_, _, column) in zip(values, layout.places):
            if value is not None:
                column.append(place, value)
        return place

    def _add(self, head: dict[str, Any]) -> int:
        place = self._order.add(head)
        if any(column.rows and column.rows[-1] >= place for column in self.columns.values()):
            for column in self.columns.values():
                column.cut(place)
        return place

    def _complete(self, row: dict[str, Any]) -> int:
        place = self._order.completed_by(row)
        if place is None:
            return len(self)
        for name, value in _numbers(row).items():
            if name != AMENDS and self._wanted(name):
                self.columns.setdefault(name, Column()).put(place, value)
        return place

    def _layout_of(self, line: bytes, row: dict[str, Any]) -> _Layout | None:
        attempt = row.get("attempt")
        begin = f'{{"attempt":{attempt},"resumed_from":null,"{STEP}":'.encode()
        if not (line.startswith(begin) and line.endswith(_SOUND)):  # the first of a resume, or not written by us
            return None
        fields = line.split(b",")
        places = []
        for name in row:
            if name in NOT_METRICS or not self._wanted(name):
                continue
            start = f'"{name}":'.encode()
            index = next((place for place, text in enumerate(fields) if text.startswith(start)), None)
            if index is None:
                return None
            places.append((index, start, self.columns.setdefault(name, Column())))
        return _Layout(begin, line.count(b","), tuple(places), max([2, *(place for place, _, _ in places)]))


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    """The metrics of a row that have a value; NaN for those that were not finite."""
    found = {name: _float(value) for name, value in row.items() if isinstance(value, (int, float))}
    nonfinite = row.get("nonfinite")
    if isinstance(nonfinite, list):
        found |= {name: NAN for name in nonfinite if isinstance(name, str)}
    return {name: value for name, value in found.items() if name not in NOT_METRICS}


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats, in a forged file
        return NAN
