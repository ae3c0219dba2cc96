"""The metrics of a run as arrays and frames, next to what `gymnast runs metrics` writes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_runs import make_run

from gymnast.errors import MissingPackageError
from gymnast.metrics.sinks.jsonl import JsonlSink
from gymnast.runs.store import Run
from gymnast.runs.tables import write_table
from gymnast.service.frames import metric_arrays, metric_frame


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = make_run(tmp_path)
    made.metrics_path.unlink()
    with JsonlSink(made.metrics_path, ["env_steps", "vec_steps", "train/entropy", "eval/return_mean"]) as sink:
        for step in (1, 2, 3):
            sink.write({"env_steps": step, "vec_steps": step, "train/entropy": 0.1 * step})
        sink.amend(2, {"eval/return_mean": 5.0})
    return made


def test_one_value_per_row(run: Run) -> None:
    arrays = metric_arrays(run)
    assert list(arrays) == ["env_steps", "vec_steps", "eval/return_mean", "train/entropy"]
    assert arrays["env_steps"].dtype == np.int64
    np.testing.assert_array_equal(arrays["eval/return_mean"], [np.nan, 5.0, np.nan])
    assert list(metric_arrays(run, ["env_steps", "train/entropy_loss"])) == ["env_steps", "train/entropy_loss"]
    np.testing.assert_allclose(metric_arrays(run, ["train/entropy_loss"])["train/entropy_loss"], [-0.1, -0.2, -0.3])


def test_equals_the_table_that_is_written(run: Run, tmp_path: Path) -> None:
    write_table([run], tmp_path / "metrics.parquet")
    table = pl.read_parquet(tmp_path / "metrics.parquet")
    for name, values in metric_arrays(run).items():
        np.testing.assert_array_equal(values, table[name].cast(pl.Float64).fill_null(np.nan).to_numpy())


def test_frames(run: Run) -> None:
    frame = metric_frame(run, library="polars")
    assert isinstance(frame, pl.DataFrame) and frame["env_steps"].to_list() == [1, 2, 3]
    assert frame.schema["env_steps"] == pl.Int64


def test_a_missing_library_is_named_with_its_install_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r'pip install "pandas"'):
        metric_frame(run, library="pandas")
