"""Where the time of a run goes, by its last rows."""

from __future__ import annotations

from gymnast.metrics.sinks.jsonl import parse_row
from gymnast.runs.store import Run

PARTS = ("env", "policy", "learn", "eval", "checkpoint", "video", "other")
"""Metrics `time/…` that are shares of the wall time, in the order in which people read them."""
TAIL_BYTES = 1 << 17
"""Of the metrics file: some dozens of rows."""


def time_split(run: Run) -> dict[str, float]:
    """The share of the wall time of each part, as last known; empty before the first row. Reads the end of the file alone."""
    found: dict[str, float] = {}
    for line in reversed(_last_lines(run)):
        row = parse_row(line)
        if row is None:  # cut off, or damaged
            continue
        for part in PARTS:
            share = row.get(f"time/{part}")
            if isinstance(share, (int, float)):
                found.setdefault(part, float(share))
        if len(found) == len(PARTS):
            break
    return {part: found[part] for part in PARTS if part in found}


def _last_lines(run: Run) -> list[bytes]:
    try:
        with run.metrics_path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read().splitlines()
    except FileNotFoundError:
        return []
