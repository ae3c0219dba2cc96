"""The metrics of runs as one table in a file that other programs read: Parquet with its types, or CSV."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from gymnast.errors import GymnastError, UsageError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.parquet import Kind, ParquetWriter
from gymnast.metrics.sinks.jsonl import NOT_METRICS, MetricRows
from gymnast.runs.files import replacing
from gymnast.runs.store import Run

RUN, ATTEMPT, NONFINITE = "run", "attempt", "nonfinite"
BATCH = 8192
"""Rows per row group, and in memory."""
LARGEST = 2**53
"""Up to here a whole number that was written as a float is exact."""
Row = dict[str, Any]


def write_table(runs: Sequence[Run], path: Path) -> tuple[int, int]:
    """Write the rows of runs below each other, as the suffix says; gives the number of rows and of columns."""
    kind_of_table(path)
    for run in runs:
        if not run.metrics_path.exists():
            raise UsageError(f"Run {run.id} has logged nothing yet.")
    columns = _columns(runs)
    return write_rows(path, columns, _rows(runs, columns)), len(columns)


def write_rows(path: Path, columns: dict[str, Kind], rows: Iterator[Row]) -> int:
    """Write any rows as the suffix of a file says; gives how many there were."""
    write = WRITERS[kind_of_table(path)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            return write(file, columns, rows)
    except OSError as error:
        raise GymnastError(f"Cannot write '{path}': {error.strerror or error}.") from None


def kind_of_table(path: Path) -> str:
    """The suffix, which says how a table is written."""
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise UsageError(
            f"'{path}' is neither .parquet nor .csv: tables are written as one of these, as the suffix says."
        )
    return suffix


def _columns(runs: Sequence[Run]) -> dict[str, Kind]:
    """All that any row of any run has, in the catalogue's order, each of one type whatever the first rows hold."""
    catalogue = load_catalogue()
    names: dict[str, None] = {}
    for run in runs:
        for row in MetricRows(run.metrics_path):
            names |= dict.fromkeys(row)
    kinds: dict[str, Kind] = {RUN: "text", ATTEMPT: "int"}
    for name in catalogue.order(name for name in names if name not in (RUN, *NOT_METRICS)):
        known = catalogue.get(name)
        counts = known is not None and not known.namespace and known.precision == 0
        kinds[name] = "int" if counts else "float"
    return kinds


def _rows(runs: Sequence[Run], columns: dict[str, Kind]) -> Iterator[Row]:
    """Numbers alone: a run from elsewhere may hold anything."""
    for run in runs:
        for row in MetricRows(run.metrics_path):
            nonfinite = row.get(NONFINITE)
            for name in nonfinite if isinstance(nonfinite, list) else ():
                if isinstance(name, str):
                    row[name] = math.nan  # JSON has no word for it
            found: Row = {name: _number(kind, row.get(name)) for name, kind in columns.items()}
            yield found | {RUN: run.id}


def _number(kind: Kind, value: Any) -> int | float | None:
    if not isinstance(value, (int, float)):
        return None
    if kind == "float":
        if abs(value) <= sys.float_info.max:
            return value
        return math.nan
    if -LARGEST <= value <= LARGEST:
        return int(value)
    return None


def _write_parquet(file: BinaryIO, columns: dict[str, Kind], rows: Iterator[Row]) -> int:
    count, writer = 0, ParquetWriter(file, columns)
    while batch := list(islice(rows, BATCH)):
        writer.write(batch)
        count += len(batch)
    writer.close()
    return count


def _write_csv(file: BinaryIO, columns: dict[str, Kind], rows: Iterator[Row]) -> int:
    text, count = io.TextIOWrapper(file, "utf-8", newline=""), 0
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([row.get(name) for name in columns])
        count += 1
    text.flush()
    text.detach()
    return count


WRITERS: dict[str, Callable[[BinaryIO, dict[str, Kind], Iterator[Row]], int]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
}
