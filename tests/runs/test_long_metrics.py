"""Metrics of a long run are read row by row: the commands that read them need little memory, however many rows there are."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launch import environment
from made_runs import finished_run

from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.sinks.jsonl import AMENDS, JsonlSink, MetricRows

ROWS = 25_000
MOST_MEGABYTES = 120
"""Twice what the commands need with one row; all rows in memory would take 280 MB for one run and 500 for two."""
MEASURED = """
import atexit, pathlib, re, sys
from gymnast.__main__ import main
atexit.register(lambda: print(re.search(r"VmHWM:.*", pathlib.Path("/proc/self/status").read_text())[0], file=sys.stderr))
main()
"""
SOLVED_AT = 64 * 12_000
TAKEN_OVER = 64 * 20_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with equal metrics: an evaluation that came late, and an attempt that was replaced."""
    root = tmp_path_factory.mktemp("long")
    run = finished_run(root)
    _write(run.metrics_path)
    shutil.copytree(run.folder, root / "aaaaa")
    shutil.copytree(run.folder, root / "bbbbb")
    return root


def _write(path: Path) -> None:
    """As the sink writes them; 100 MB are made in a moment by filling numbers into one line."""
    values: dict[str, Any] = {metric.name: 0.12345678901234567 for metric in load_catalogue()}
    values |= {"eval/return_mean": None, "train/solved": 0.0, "iteration": "@I"}
    del values["env_steps"]

    def line(attempt: int, resumed_from: int | None, loss: float = 0.5) -> str:
        head = {"attempt": attempt, "resumed_from": resumed_from, "env_steps": "@S"}
        row = {**head, **values, "train/loss": loss, "nonfinite": []}
        return json.dumps(row, separators=(",", ":")).replace('"@S"', "%d").replace('"@I"', "%d") + "\n"

    first, takes_over, second = line(1, None, 0.25), line(2, TAKEN_OVER), line(2, None)
    late = {"attempt": 1, AMENDS: SOLVED_AT, "env_steps": SOLVED_AT, "train/solved": 1.0, "eval/return_mean": 321.0}
    with path.open("w") as file:
        for i in range(1, TAKEN_OVER // 64 + 500):
            file.write(first % (64 * i, i))
            if 64 * i == SOLVED_AT + 640:
                file.write(json.dumps(late) + "\n")
        for i in range(TAKEN_OVER // 64 + 1, ROWS + 1):
            file.write((takes_over if 64 * i == TAKEN_OVER + 64 else second) % (64 * i, i))


def peak(root: Path, *arguments: str) -> tuple[str, float]:
    """What a command prints, and the most memory it had, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments, "--runs-dir", str(root)],
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, int(done.stderr.split()[-2]) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells how much memory a process had")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["runs", "show", "aaaaa"], "1,600,000"),
        (["runs", "compare", "aaaaa", "bbbbb", "-m", "eval/return_mean"], "321"),
        (["diff", "aaaaa", "bbbbb"], "Equal to the last bit: 25,000 iterations"),
    ],
)
def test_little_memory_for_many_rows(command: list[str], told: str, root: Path) -> None:
    """Late evaluations and replaced attempts are put in their places all the same."""
    text, megabytes = peak(root, *command)
    assert told in text
    assert megabytes < MOST_MEGABYTES


def test_rows_of_a_long_run(root: Path) -> None:
    """Each row once, from the attempt that counts, with what became known of it later; the same from the end."""
    rows = MetricRows(root / "aaaaa" / "metrics.jsonl")
    assert (len(rows), rows.resumed_from) == (ROWS, [TAKEN_OVER])
    forth = [(row["env_steps"], row["attempt"], row["train/loss"], row["eval/return_mean"]) for row in rows]
    for step, attempt, loss, score in forth:
        assert (attempt, loss) == ((1, 0.25) if step <= TAKEN_OVER else (2, 0.5))
        assert score == (321.0 if step == SOLVED_AT else None)
    assert [step for step, *_ in forth] == [64 * i for i in range(1, ROWS + 1)]
    newest = next(reversed(rows))
    assert (newest["env_steps"], newest["iteration"]) == (64 * ROWS, ROWS)


def test_a_row_whose_end_is_damaged_is_named_and_left_out(tmp_path: Path) -> None:
    """Its beginning says where it belongs, and only reading it shows that it is damaged."""
    path = tmp_path / "metrics.jsonl"
    with JsonlSink(path, ["train/loss"]) as sink:
        for step in (8, 16, 24):
            sink.write({"env_steps": step, "train/loss": 1.0})
    path.write_bytes(path.read_bytes().replace(b'"env_steps":16,"train/loss":1.0', b'"env_steps":16,"train/loss":#.0'))
    with pytest.warns(UserWarning, match="row of env step 16"):
        assert [row["env_steps"] for row in MetricRows(path)] == [8, 24]


def test_a_torn_row_at_the_end_of_a_large_file(tmp_path: Path) -> None:
    """It is cut off without reading the whole file, also where it is longer than what is read at once."""
    path = tmp_path / "metrics.jsonl"
    whole = b'{"env_steps":8}\n'
    for torn in (b"", b'{"env_steps":16,"x":', b'{"env_steps":16,"x":' + b"1" * 200_000):
        path.write_bytes(whole * 9000 + torn)
        JsonlSink(path, ["train/loss"]).close()
        assert path.read_bytes() == whole * 9000
