"""metrics.jsonl: one wide JSON object per iteration, appended so that a crash loses at most the row being written.

What becomes known of an iteration only later (an evaluation beside training) follows as a short line that `amends` its
row; `read_rows` puts it in its place.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

STEP = "env_steps"
"""The key that orders rows; every row has it."""
AMENDS = "amends"
"""The key of a line that completes an earlier row: that row's step."""
NOT_METRICS = ("attempt", "resumed_from", "nonfinite")
"""Keys of a row that say something about the row itself."""


class JsonlSink:
    """Appends rows with the same keys. The first row of a resumed attempt says at which step it took over."""

    def __init__(
        self,
        path: Path | str,
        keys: Iterable[str] | None = None,
        *,
        attempt: int = 1,
        resumed_from: int | None = None,
    ) -> None:
        """`keys` are all this run may log (those of the first row when not given); `resumed_from` is in env steps."""
        self.path = Path(path)
        self.attempt = attempt
        self.keys = None if keys is None else list(dict.fromkeys([STEP, *keys]))
        self._resumed_from = resumed_from
        self._last_step: float | None = None
        # Unbuffered: a row is one write, visible to readers at once and whole unless the machine dies in it.
        self._file = self.path.open("ab", buffering=0)
        _mend_tail(self.path)

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
        if unknown := set(values) - set(self.keys or ()):
            raise ValueError(f"metrics that were not announced: {', '.join(sorted(unknown))}")
        plain = {key: None if value is None else float(value) for key, value in values.items()}
        self._append({"attempt": self.attempt, AMENDS: step, STEP: step, **plain})

    def sync(self) -> None:
        """Force rows to the disk; for checkpoints, which must never be ahead of their metrics after a power cut."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> JsonlSink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _record(self, row: Mapping[str, float | None]) -> dict[str, Any]:
        if self.keys is None:
            self.keys = list(dict.fromkeys([STEP, *row]))
        step = row.get(STEP)
        if step is None or (self._last_step is not None and step <= self._last_step):
            raise ValueError(f"{STEP} must grow from row to row: {step} after {self._last_step}")
        record: dict[str, Any] = {"attempt": self.attempt, "resumed_from": self._resumed_from}
        nonfinite: list[str] = []
        get, isfinite = row.get, math.isfinite
        used = 0
        for key in self.keys:
            value = get(key)
            used += key in row
            if value is not None and not isfinite(value):
                nonfinite.append(key)
                value = None
            # Numpy scalars are numbers too, but json knows only its own.
            record[key] = value if value is None or type(value) in (int, float) else float(value)
        if used != len(row):
            raise ValueError(f"metrics that were not announced: {', '.join(sorted(set(row) - set(self.keys)))}")
        record["nonfinite"] = nonfinite
        return record


def read_rows(path: Path | str) -> list[dict[str, Any]]:
    """Rows with strictly growing env_steps: a torn last line and rows that a later attempt replaced are left out."""
    kept: list[dict[str, Any]] = []
    lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        row = _parse(line)
        if row is None:
            # The last piece is empty, or a row still being written.
            if number < len(lines):
                warnings.warn(f"{path}, line {number}: unreadable row left out", stacklevel=2)
            continue
        if AMENDS in row:
            _amend(kept, row)
            continue
        taken_over = row.get("resumed_from")
        limit = row[STEP] if taken_over is None else min(row[STEP], taken_over + 1)
        while kept and kept[-1][STEP] >= limit:
            kept.pop()
        kept.append(row)
    return kept


def _amend(rows: list[dict[str, Any]], line: dict[str, Any]) -> None:
    """Complete the row that `line` is about; a row that a later attempt will replace may be gone."""
    row = next((row for row in reversed(rows) if row[STEP] == line[AMENDS]), None)
    if row is not None:
        row |= {key: value for key, value in line.items() if key not in ("attempt", AMENDS)}


def metrics_of(row: Mapping[str, Any]) -> dict[str, float | None]:
    """The metrics of a row without the keys about the row, as History takes them."""
    return {key: value for key, value in row.items() if key not in NOT_METRICS}


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and STEP in row else None


def _mend_tail(path: Path) -> None:
    """Cut off a row torn by a crash, so that the next one starts on a line of its own."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end == len(data):
        return
    with path.open("r+b") as file:
        if _parse(data[end:]) is None:
            file.truncate(end)
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
