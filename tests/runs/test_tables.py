"""`gymnast runs metrics`: a table that other programs read by default, with its types, merged as our own readers merge it."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launch import gymnast
from made_runs import finished_run

from gymnast.errors import GymnastError, UsageError
from gymnast.metrics.sinks.jsonl import JsonlSink, MetricRows
from gymnast.runs.store import Run
from gymnast.runs.tables import BATCH, write_table

KEYS = ("iteration", "progress", "rollout/return_mean", "eval/return_mean", "train/loss", "mine/own")
EVALUATED = 140
"""The first row with an evaluation: readers that guess types look at a hundred rows."""


def row(number: int, **more: Any) -> dict[str, Any]:
    """One iteration; its metrics but the evaluation are known from the number."""
    return {"env_steps": 64 * number, "iteration": number, "progress": number / 400, "rollout/return_mean": 1.0} | more


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Evaluated late and once beside training, not finite once, stopped after 300 iterations and resumed from the 250th."""
    run = finished_run(tmp_path / "runs", 9.5)
    run.metrics_path.unlink()
    with JsonlSink(run.metrics_path, KEYS) as sink:
        for number in range(1, 301):
            sink.write(row(number, **({"eval/return_mean": 9.5} if number == EVALUATED else {})))
        sink.amend(64 * 5, {"eval/return_mean": 4.5})
    with JsonlSink(run.metrics_path, KEYS, attempt=2, resumed_from=64 * 250) as sink:
        for number in range(251, 261):
            sink.write(row(number, **{"train/loss": math.inf if number == 255 else 0.5}))
    return run


READERS: dict[str, Callable[[Any, str], Any]] = {
    "polars": lambda polars, path: polars.read_parquet(path).to_dicts(),
    "polars, lazily": lambda polars, path: polars.scan_parquet(path).collect().to_dicts(),
    "duckdb": lambda duckdb, path: [
        dict(zip(found.columns, line)) for found in [duckdb.sql(f"FROM '{path}'")] for line in found.fetchall()
    ],
    "pandas": lambda pandas, path: pandas.read_parquet(path).to_dict("records"),
}
"""By default settings, as the page says."""


@pytest.mark.parametrize("reader", READERS)
def test_parquet_is_read_by_default(reader: str, run: Run, tmp_path: Path) -> None:
    """Every row and value that our own reader gives, whatever the first hundred rows lack."""
    package = pytest.importorskip(reader.partition(",")[0])
    if reader == "pandas":
        pytest.importorskip("pyarrow", reason="pandas reads Parquet with it")
    path = tmp_path / "new" / "metrics.parquet"
    assert write_table([run], path) == (260, 9)
    found = READERS[reader](package, str(path))
    expected = list(MetricRows(run.metrics_path))
    assert len(found) == len(expected) == 260
    for ours, theirs in zip(expected, found, strict=True):
        assert theirs["run"] == run.id
        assert (theirs["attempt"], theirs["env_steps"]) == (ours["attempt"], ours["env_steps"])
        for key in KEYS:
            value = theirs[key]
            if key in ours["nonfinite"]:
                assert math.isnan(value)
            elif ours[key] is None:
                assert value is None or math.isnan(value)  # pandas knows no other null in a column of floats
            else:
                assert value == ours[key]
    assert [line["eval/return_mean"] for line in (found[4], found[EVALUATED - 1])] == [4.5, 9.5]


def test_types_do_not_depend_on_the_rows(run: Run, tmp_path: Path) -> None:
    """Steps are whole numbers, metrics are floats even where every row lacks them, and so two runs fit below each other."""
    polars = pytest.importorskip("polars")
    other = finished_run(run.root, 3.0, seed=1)
    other.metrics_path.unlink()
    with JsonlSink(other.metrics_path, ("iteration", "eval/return_mean", "train/other")) as sink:
        sink.write({"env_steps": 64, "iteration": 1, "train/other": 3})
    kinds = {}
    for name, runs in {"one": [run], "other": [other], "both": [run, other]}.items():
        write_table(runs, tmp_path / f"{name}.parquet")
        kinds[name] = dict(polars.read_parquet(tmp_path / f"{name}.parquet").schema)
    shown = {name: str(kind) for name, kind in kinds["both"].items()}
    assert shown.pop("run") == "String"
    assert {name for name, kind in shown.items() if kind == "Int64"} == {"attempt", "env_steps", "iteration"}
    assert set(shown.values()) == {"Int64", "Float64"}
    assert kinds["one"].items() | kinds["other"].items() == kinds["both"].items()
    table = polars.read_parquet(tmp_path / "both.parquet")
    assert table["run"].to_list() == [run.id] * 260 + [other.id]
    assert table["train/other"].drop_nulls().to_list() == [3.0]
    tables = [polars.read_parquet(tmp_path / f"{name}.parquet") for name in ("one", "other")]
    assert (
        polars.concat(tables, how="diagonal")
        .sort("run", "env_steps")
        .equals(table.select(polars.concat(tables, how="diagonal").columns).sort("run", "env_steps"), null_equal=True)
    )


def test_csv(run: Run, tmp_path: Path) -> None:
    """The same table for spreadsheets; what is not there is empty."""
    path = tmp_path / "metrics.CSV"
    assert write_table([run], path) == (260, 9)
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 260
    assert (found[0]["run"], found[0]["env_steps"], found[0]["progress"]) == (run.id, "64", str(1 / 400))
    assert [line["eval/return_mean"] for line in found[3:6]] == ["", "4.5", ""]
    assert found[254]["train/loss"] == "nan"


def test_long_runs_come_in_pieces(tmp_path: Path) -> None:
    """More rows than are held at once, in row groups of which the last is not full."""
    polars = pytest.importorskip("polars")
    run = finished_run(tmp_path / "runs", 1.0)
    with run.metrics_path.open("w") as file:
        for step in range(1, 2 * BATCH + 12):
            file.write(
                f'{{"attempt":1,"resumed_from":null,"env_steps":{step},"train/loss":{step % 7},"nonfinite":[]}}\n'
            )
    assert write_table([run], tmp_path / "long.parquet") == (2 * BATCH + 11, 4)
    table = polars.read_parquet(tmp_path / "long.parquet")
    assert table["env_steps"].to_list() == list(range(1, 2 * BATCH + 12))
    assert table["train/loss"].to_list() == [float(step % 7) for step in range(1, 2 * BATCH + 12)]


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    """A run from elsewhere may hold anything."""
    run = finished_run(tmp_path / "runs", 1.0)
    lines = [
        {"env_steps": 1, "attempt": "one", "train/loss": "=cmd()", "nonfinite": 5},
        {"env_steps": 2, "attempt": 2**90, "train/loss": [1], "nonfinite": [{}, "train/ratio"]},
        {"env_steps": 3, "iteration": 1e300, "train/loss": 10**400, "train/ratio": True},
    ]
    run.metrics_path.write_text("\n".join(map(json.dumps, lines)) + '\n{"env_steps": 4, "train/loss": 1e400}\n')
    for suffix in (".csv", ".parquet"):
        assert write_table([run], tmp_path / f"odd{suffix}")[0] == 4
    with (tmp_path / "odd.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [line["train/loss"] for line in found] == ["", "", "nan", "nan"]
    assert [line["attempt"] for line in found] == [""] * 4
    assert [line["train/ratio"] for line in found] == ["", "nan", "True", ""]


def test_other_files_and_empty_runs_are_refused(run: Run, tmp_path: Path) -> None:
    """A sentence each, and nothing is left behind."""
    with pytest.raises(UsageError, match=r"neither \.parquet nor \.csv"):
        write_table([run], tmp_path / "metrics.xlsx")
    (tmp_path / "file").write_text("")
    with pytest.raises(GymnastError, match="Cannot write"):
        write_table([run], tmp_path / "file" / "metrics.csv")
    run.metrics_path.unlink()
    with pytest.raises(UsageError, match=f"Run {run.id} has logged nothing yet"):
        write_table([run], tmp_path / "metrics.csv")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "runs"]


def test_the_command(run: Run, tmp_path: Path) -> None:
    """One sentence, or JSON."""
    told = gymnast("runs", "metrics", run.id, cwd=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == "metrics.parquet: 1 run, 260 rows, 9 columns\n"
    told = gymnast("runs", "metrics", run.id, "-o", "m.csv", "--json", cwd=tmp_path)
    assert json.loads(told.stdout) == {"path": "m.csv", "runs": [run.id], "rows": 260, "columns": 9}
