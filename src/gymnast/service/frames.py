"""All metrics of a run as one table: arrays, or a frame of pandas or polars where one is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gymnast.errors import MissingPackageError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.runs.store import Run
from gymnast.service.columns import Columns
from gymnast.service.metric_names import Selection

Library = Literal["auto", "pandas", "polars"]
LIBRARIES = ("pandas", "polars")


def metric_arrays(run: Run, metrics: Sequence[str] = ("*",)) -> dict[str, NDArray[Any]]:
    """One array per metric with a value per row, in the order of the catalogue; NaN where a row has none.

    Counts that every row has (`env_steps`, `updates`) are whole numbers.
    """
    columns, names = _read(run, metrics)
    found: dict[str, NDArray[Any]] = {}
    for name, (column, factor) in names.items():
        values = np.full(len(columns), np.nan)
        if column in columns.columns:
            rows, known = columns.columns[column].since(0)
            values[rows] = known * factor
        if _counts(column, values):
            found[name] = values.astype(np.int64)
        else:
            found[name] = values
    return found


def metric_frame(run: Run, metrics: Sequence[str] = ("*",), *, library: Library = "auto") -> Any:
    """The same as a `pandas.DataFrame` or a `polars.DataFrame`; `auto` takes the one that is installed, pandas first."""
    name = _installed() if library == "auto" else library
    arrays = metric_arrays(run, metrics)
    try:
        if name == "pandas":
            import pandas

            return pandas.DataFrame(arrays)
        import polars

        return polars.DataFrame(arrays)
    except ImportError:
        raise MissingPackageError(f"A {name} frame of a run's metrics", package=name) from None


def _installed() -> str:
    for name in LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            return name
    raise MissingPackageError("A frame of a run's metrics", package="polars")


def _read(run: Run, metrics: Sequence[str]) -> tuple[Columns, dict[str, tuple[str, float]]]:
    """The columns of a run, and what each name that was asked for is in them."""
    selection = Selection(metrics)
    columns = Columns(run.metrics_path, lambda name: name in selection)
    columns.read()
    wanted = {one.name: (one.column, one.factor) for one in selection.among(columns.names)}
    return columns, {name: wanted[name] for name in load_catalogue().order(wanted)}


def _counts(name: str, values: NDArray[np.float64]) -> bool:
    metric = load_catalogue().get(name)
    return metric is not None and not metric.namespace and metric.precision == 0 and bool(np.isfinite(values).all())
