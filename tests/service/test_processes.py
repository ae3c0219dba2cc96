"""Real trainings in processes of their own."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from launch import environment, until
from made_runs import finished_run, make_run

from gymnast.errors import UsageError
from gymnast.runs.store import Run
from gymnast.service.metrics import LiveMetrics
from gymnast.service.plain import plain
from gymnast.service.processes import Child, is_alive, run_of, start, stop
from gymnast.service.progress import progress_of

LONG = ("train", "CartPole-v1:ppo", "-n", "50000000", "train.stop_when_solved=false", "eval.every=50000000")


@pytest.fixture
def training(tmp_path: Path) -> Child:
    log = tmp_path / "logs" / "train.log"
    child = start([*LONG, "-f", str(tmp_path / "runs")], log=log, cwd=tmp_path, environment=environment())
    yield child
    if child.exit_code() is None:
        child.handle.kill()
        child.handle.wait()


def test_a_training_is_started_found_watched_and_stopped(training: Child, tmp_path: Path) -> None:
    run = run_of(training, tmp_path / "runs")
    assert isinstance(run, Run) and is_alive(run)
    assert training.exit_code() is None
    live = LiveMetrics(run, ["rollout/return_mean"])
    until(lambda: any(len(one.x) for one in live.news().series))
    until(lambda: (progress_of(run).share or 0) > 0)
    status = stop(run)
    assert (status.state, progress_of(run).state) == ("interrupted", "interrupted")
    assert not is_alive(run) and list(run.checkpoints.glob("step=*"))
    until(lambda: training.exit_code() is not None)
    assert stop(run) == status  # nobody to stop
    assert run.id in (tmp_path / "logs" / "train.log").read_text()
    facts = plain(training)
    assert facts["command"][0] == "train" and "handle" not in facts
    json.dumps(facts)


def test_a_child_that_fails_has_no_run(tmp_path: Path) -> None:
    """Its arguments are a list: what looks like shell is text."""
    child = start(
        ["train", "CartPole-v1:ppo; touch owned", "-f", str(tmp_path / "runs")],
        log=tmp_path / "log.txt",
        cwd=tmp_path,
        environment=environment(),
    )
    finished_run(tmp_path / "runs")  # somebody else's
    assert run_of(child, tmp_path / "runs") is None
    assert child.exit_code() == 2
    assert "error: " in (tmp_path / "log.txt").read_text()
    assert not (tmp_path / "owned").exists()


def test_arguments_that_no_process_can_have_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        start(["train", "a\0b"])


def test_only_the_process_that_trains_is_stopped(tmp_path: Path) -> None:
    """A pid that was given out again is left alone, and so is a process of another machine."""
    run = make_run(tmp_path)
    status = run.status()
    run.update(process_start="long ago")
    assert status.pid == os.getpid() and stop(run) == run.status()
    run.update(machine="another", process_start=status.process_start)
    assert run.is_alive()  # by its heartbeat
    with pytest.raises(UsageError, match="can only be stopped there"):
        stop(run)
    assert replace(status, heartbeat="") != run.status()
