"""metrics.jsonl: one wide JSON object per iteration, appended so that a crash loses at most the row being written.

What becomes known of an iteration only later (an evaluation next to training) follows as a short line that `amends` its
row; `MetricRows` puts it in its place.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

STEP = "env_steps"
"""The key that orders rows; every row has it."""
AMENDS = "amends"
"""The key of a line that completes an earlier row: that row's step."""
NOT_METRICS = ("attempt", "resumed_from", "nonfinite")
"""Keys of a row that say something about the row itself."""
TAIL_BYTES = 1 << 16
_ROW_HEAD = re.compile(rb'\{"attempt":[0-9]+,"resumed_from":(null|[0-9]+),"env_steps":([0-9]+)[,}]')


class JsonlSink:
    """Appends rows. The first row of a resumed attempt says at which step it took over."""

    def __init__(
        self,
        path: Path | str,
        keys: Iterable[str] | None = None,
        *,
        attempt: int = 1,
        resumed_from: int | None = None,
    ) -> None:
        """`keys` are in every row from the first on, others as soon as they are logged; `resumed_from` is in env steps."""
        self.path = Path(path)
        self.attempt = attempt
        self.keys: list[str] = []
        self._known: set[str] = set()
        self._resumed_from = resumed_from
        self._last_step: float | None = None
        # Unbuffered: a row is one write, visible to readers at once and whole unless the machine dies in it.
        self._file = self.path.open("a+b", buffering=0)
        _mend_tail(self.path)
        # Rows of a later attempt have what the first row had, also of names that only a run knows: parts of its network.
        self._announce([STEP, *(keys or ()), *_names_in_first_row(self.path)])

    def write(self, row: Mapping[str, float | None]) -> None:
        """Append one row; NaN and infinities become null and are named in `nonfinite`."""
        record = self._record(row)
        self._append(record)
        self._last_step, self._resumed_from = record[STEP], None

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        start = os.fstat(self._file.fileno()).st_size
        rest = memoryview(line)
        try:
            while rest:  # a nearly full disk takes a part, and says why only when asked to take the rest
                rest = rest[self._file.write(rest) :]
        except OSError:
            # A part of a row would swallow the next one.
            os.ftruncate(self._file.fileno(), start)
            raise

    def amend(self, step: int, values: Mapping[str, float | None]) -> None:
        """Append finite values that belong to the row of `step`, which is written already."""
        plain = {key: None if value is None else float(value) for key, value in values.items()}
        self._append({"attempt": self.attempt, AMENDS: step, STEP: step, **plain})

    def fileno(self) -> int:
        """The open file's descriptor."""
        return self._file.fileno()

    def reopen(self) -> None:
        """Go on with the file that has the path now: the one so far was deleted, and its content put back."""
        self._file.close()
        self._file = self.path.open("a+b", buffering=0)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> JsonlSink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _record(self, row: Mapping[str, float | None]) -> dict[str, Any]:
        step = row.get(STEP)
        if step is None or (self._last_step is not None and step <= self._last_step):
            raise ValueError(f"{STEP} must grow from row to row: {step} after {self._last_step}")
        record: dict[str, Any] = {"attempt": self.attempt, "resumed_from": self._resumed_from}
        nonfinite: list[str] = []
        get, isfinite = row.get, math.isfinite
        if not row.keys() <= self._known:
            self._announce(row)
        for key in self.keys:
            value = get(key)
            if value is not None and not isfinite(value):
                nonfinite.append(key)
                value = None
            # Numpy scalars are numbers too, but json knows only its own.
            if value is None or type(value) in (int, float):
                record[key] = value
            else:
                record[key] = float(value)
        record["nonfinite"] = nonfinite
        return record

    def _announce(self, names: Iterable[str]) -> None:
        """Keys that come later, such as the metrics of a plug-in, are in every row from then on."""
        new = [name for name in dict.fromkeys(names) if name not in self._known]
        self.keys.extend(new)
        self._known.update(new)


class RowOrder:
    """Which rows of a file count: their env steps grow, and those of a later attempt replace what lies past its start."""

    def __init__(self) -> None:
        self.steps: list[int | float] = []
        """Env steps of the rows that count."""

    def add(self, head: Mapping[str, Any]) -> int:
        """Take a row in; gives its place. The rows that had this place and later ones are gone."""
        taken_over = head.get("resumed_from")
        if taken_over is None:
            limit = head[STEP]
        else:
            limit = min(head[STEP], taken_over + 1)
        place = bisect_left(self.steps, limit)
        del self.steps[place:]
        self.steps.append(head[STEP])
        return place

    def completed_by(self, head: Mapping[str, Any]) -> int | None:
        """The place of the row that an amending line completes; None if a later attempt will replace that row."""
        place = bisect_left(self.steps, head[AMENDS])
        if place < len(self.steps) and self.steps[place] == head[AMENDS]:
            return place
        return None


class MetricRows:
    """The rows of a metrics file with strictly growing env_steps, read from disk each time they are looped over.

    A torn last line and rows that a later attempt replaced are left out. Only where each row begins is kept in memory: a long run
    has gigabytes of rows.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._order = RowOrder()
        self._offsets = array("Q")
        self._amendments: dict[int, list[int]] = {}  # offsets of the lines that complete a row, by the row's place
        self._takeovers: dict[int, int] = {}  # where a later attempt began, by the place of its first row
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                head = _head(line)
                if head is not None:
                    self._take(head, offset)
                elif line.endswith(b"\n"):  # else it is still being written
                    _warn_of(self.path, f"line {number}")
                offset += len(line)

    def _take(self, head: dict[str, Any], offset: int) -> None:
        if AMENDS in head:
            completed = self._order.completed_by(head)
            if completed is not None:
                self._amendments.setdefault(completed, []).append(offset)
            return
        place = self._order.add(head)
        for gone in range(place, len(self._offsets)):
            self._amendments.pop(gone, None)
            self._takeovers.pop(gone, None)
        del self._offsets[place:]
        if head.get("resumed_from") is not None:
            self._takeovers[place] = head["resumed_from"]
        self._offsets.append(offset)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def resumed_from(self) -> list[int]:
        """Env steps at which later attempts took over."""
        return [int(step) for step in self._takeovers.values()]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._read(range(len(self)))

    def thinned(self, most: int) -> Iterator[dict[str, Any]]:
        """At most so many rows, evenly spread, the last one among them."""
        stride = max(1, -(-len(self) // most))
        return self._read(range((len(self) - 1) % stride, len(self), stride))

    def __reversed__(self) -> Iterator[dict[str, Any]]:
        return self._read(range(len(self) - 1, -1, -1))

    def _read(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        with self.path.open("rb") as file:
            for place in places:
                row = parse_row(_line_at(file, self._offsets[place]))
                if row is None:  # its beginning was sound, the rest is not
                    _warn_of(self.path, f"row of env step {self._order.steps[place]}")
                    continue
                for offset in self._amendments.get(place, ()):
                    more = parse_row(_line_at(file, offset)) or {}
                    row |= {key: value for key, value in more.items() if key not in ("attempt", AMENDS)}
                yield row


def _line_at(file: BinaryIO, offset: int) -> bytes:
    file.seek(offset)
    return file.readline()


def _warn_of(path: Path, where: str) -> None:
    warnings.warn(f"{path}, {where}: unreadable row left out", stacklevel=3)


def _head(line: bytes) -> dict[str, Any] | None:
    """What says where a row belongs. A line as we write it begins with that, and the rest need not be parsed for it."""
    if (match := _ROW_HEAD.match(line)) and line.endswith(b"]}\n"):
        taken_over = None
        if match[1] != b"null":
            taken_over = int(match[1])
        return {"resumed_from": taken_over, STEP: int(match[2])}
    return parse_row(line)


def parse_row(line: bytes) -> dict[str, Any] | None:
    """One line of a metrics file, from whole JSON; None if it is not a row."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or STEP not in row:
        return None
    placed = (row[STEP], row.get(AMENDS, 0), row.get("resumed_from") or 0)
    if all(isinstance(value, (int, float)) for value in placed):
        return row
    return None


def _names_in_first_row(path: Path) -> list[str]:
    """Metrics of the first row of a file; none where it is empty."""
    with path.open("rb") as file:
        row = parse_row(file.readline()) or {}
    return [name for name in row if name not in (*NOT_METRICS, AMENDS)]


def _mend_tail(path: Path) -> None:
    """Cut off a row torn by a crash, so that the next one starts on a line of its own."""
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        tail = b""
        while end > 0 and b"\n" not in tail:  # from the end: the file may be large
            begin = max(0, end - TAIL_BYTES)
            file.seek(begin)
            tail = file.read(end - begin) + tail
            end = begin
        torn = tail[tail.rfind(b"\n") + 1 :]
        if not torn:
            return
        if parse_row(torn) is None:
            file.truncate(size - len(torn))
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
