"""A run folder of which a part vanishes while its training goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gymnast.errors import GymnastError, UsageError
from gymnast.metrics.sinks.jsonl import JsonlSink, MetricRows
from gymnast.runs.rescue import Rescue
from gymnast.runs.store import Run

PARTS = ("config.json", "status.json", "metrics.jsonl", "lock", "checkpoints", ".")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A run that this process has locked."""
    run = Run.create(tmp_path / "runs", {"name": "CartPole-v1:ppo", "env": {"id": "CartPole-v1"}})
    with run.lock():
        yield run


def remove(path: Path) -> None:
    """A file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_vanishes_is_put_back(run: Run, part: str) -> None:
    """Twice: config, status, rows and lock are there again, and nobody else can train in the run."""
    config, created = run.config(), run.status().created
    with JsonlSink(run.metrics_path) as sink:
        sink.write({"env_steps": 1.0})
        rescue = Rescue(run, [sink])
        assert rescue.is_whole()
        for step in (2.0, 3.0):
            remove(run.folder / part)
            assert not rescue.is_whole()
            rescue.rebuild()
            assert rescue.is_whole()
            sink.write({"env_steps": step})
        assert [row["env_steps"] for row in MetricRows(run.metrics_path)] == [1, 2, 3]
        assert run.config() == config
        assert (run.status().state, run.status().created) == ("running", created)
        with pytest.raises(UsageError, match="is being trained by process"):
            run.lock()
        rescue.close()


def test_a_run_that_another_process_has_taken_meanwhile_is_left_to_it(run: Run) -> None:
    """Two trainers would write into each other's files."""
    with JsonlSink(run.metrics_path) as sink:
        rescue = Rescue(run, [sink])
        remove(run.folder / "lock")
        with run.lock(), pytest.raises(GymnastError, match=r"is being trained by process .*try again\. Training stops"):
            rescue.rebuild()
