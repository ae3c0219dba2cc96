"""The loop keeps whatever trains: a trainer of a plug-in, with its own way to learn, is evaluated, saved, stopped and resumed."""

from __future__ import annotations

import io
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import climber
import pytest
from installed import Install
from rich.console import Console
from runs_alike import assert_same_end, end_of

from gymnast import api
from gymnast.config.load import Resolved, validate
from gymnast.errors import ConfigError
from gymnast.metrics.history import History
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.build import make_trainer
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.train import Resume, resume_point, train
from gymnast.training.trainer import Trainer

ITERATION = 4 * 16


@pytest.fixture(autouse=True)
def _installed(install: Install) -> None:
    """An algorithm that brings a trainer of its own."""
    install("climbing", "from climber import Config, Trainer\n", algorithms="climb = climbing")


def config(**changes: Any) -> Resolved:
    """Eight iterations; evaluations after every second one."""
    data: dict[str, Any] = {
        "name": "CartPole-v1:climb",
        "env": {"id": "CartPole-v1", "n_envs": 4, "time_limit": 40},
        "policy": {"hidden": [8]},
        "algo": {"id": "climb", "learning_rate": 0.5},
        "train": {"env_steps": 8 * ITERATION, "stop_when_solved": False, "checkpoint_every": 10**9},
        "eval": {"every": 2 * ITERATION, "episodes": 3, "start_fraction": None},
    }
    for section, values in changes.items():
        data[section] = {**data[section], **values}
    return Resolved(validate(data, {}))


class Stopping(Reporter):
    """Sends this process a signal after some iterations."""

    def __init__(self, after: int | None = None, number: signal.Signals = signal.SIGINT) -> None:
        super().__init__(quiet=True)
        self.after, self.number = after, number
        self.trainer: Trainer | None = None

    def summary(self, trainer: Trainer, resolved: Resolved, resumed: str | None) -> None:
        """Remember it."""
        self.trainer = trainer

    def update(self, history: History, *more: Any) -> None:
        """After every iteration."""
        assert self.trainer is not None
        if self.trainer.counters.iteration == self.after:
            signal.raise_signal(self.number)


def trained(resolved: Resolved, root: Path, reporter: Reporter | None = None, **more: Any) -> TrainResult:
    """One attempt."""
    result = train(resolved, root, reporter=reporter or Stopping(), **more)
    assert result is not None
    return result


def resumed(resolved: Resolved, run: Run, reporter: Reporter | None = None) -> TrainResult:
    """The next attempt."""
    point, skipped = resume_point(run)
    assert not skipped
    return trained(resolved, run.root, reporter, resume=Resume(run, point))


def test_a_whole_run(tmp_path: Path) -> None:
    """Its own metrics, its own weights, evaluations of them, and the best of those; the envs are closed at the end."""
    reporter = Stopping()
    result = trained(config(), tmp_path, reporter)
    rows = list(MetricRows(result.run.metrics_path))
    assert [row["env_steps"] for row in rows] == [ITERATION * i for i in range(1, 9)]
    assert [row["eval/return_mean"] is not None for row in rows] == [False, True] * 4
    assert all(later["climb/best"] >= row["climb/best"] for row, later in pairwise(rows))
    kept = [row["climb/kept"] for row in rows]
    assert {0.0, 1.0} == set(kept) and rows[-1]["updates"] == sum(kept)
    assert isinstance(reporter.trainer, climber.Trainer) and reporter.trainer.closed
    scores = {row["env_steps"]: row["eval/return_mean"] for row in rows if row["eval/return_mean"] is not None}
    best = checkpoint.read_pointer(result.run.folder, "best")
    assert best is not None and scores[int(best.removeprefix("step="))] == max(scores.values()) == result.best
    assert result.stop_reason == "budget spent" and result.run.status().state == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [1, 5])
def test_a_signal_stops_it_and_a_resume_ends_as_the_whole_run(
    after: int, number: signal.Signals, tmp_path: Path
) -> None:
    """At the boundary it is at, which is saved."""
    whole = trained(config(), tmp_path)
    stopped = trained(config(), tmp_path, Stopping(after, number))
    assert stopped.interrupted and stopped.stop_reason == f"interrupted ({number.name})"
    assert stopped.env_steps == after * ITERATION
    assert checkpoint.read_pointer(stopped.run.folder, "last") == f"step={after * ITERATION}"
    finished = resumed(config(), stopped.run)
    assert finished.run.status().state == "finished"
    assert_same_end(whole.run, finished.run)


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    """Without which the tests above would show nothing."""
    first, second = (trained(config(train={"env_steps": 4 * ITERATION, "seed": seed}), tmp_path) for seed in (0, 1))
    ours, theirs = end_of(first.run)["policy"], end_of(second.run)["policy"]
    assert any(not ours[name].equal(theirs[name]) for name in ours)


def test_its_evaluations_may_be_beside_it(tmp_path: Path) -> None:
    """A process of their own makes the trainer's kind of policy."""
    here = trained(config(eval={"mode": "inprocess"}), tmp_path)
    beside = trained(config(eval={"mode": "worker"}), tmp_path)
    assert_same_end(here.run, beside.run)


def test_what_it_has_trained_plays(tmp_path: Path) -> None:
    """The last weights decide as they did in training."""
    reporter = Stopping()
    result = trained(config(), tmp_path, reporter)
    agent = api.load(f"{result.run.id}/last", runs_dir=tmp_path)
    assert reporter.trainer is not None
    weights = reporter.trainer.policy.state_dict()
    assert all(tensor.equal(weights[name]) for name, tensor in agent.policy.state_dict().items())
    assert agent.predict([0.0, 0.0, 0.1, 0.5]) in (0, 1)


@pytest.mark.xfail(raises=KeyError, strict=True, reason="the summary asks every trainer why its device was chosen")
def test_what_is_printed_before_it() -> None:
    """A trainer that gives no reasons says where it trains all the same."""
    resolved, text = config(), io.StringIO()
    trainer = make_trainer(resolved.config)
    try:
        Reporter(Console(file=text, width=300)).summary(trainer, resolved, None)
    finally:
        trainer.close()
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in text.getvalue().splitlines()}
    assert lines["algo"] == "climb: 4 × 16 steps per iteration"
    assert lines["device"].startswith("cpu")


def test_a_plan_by_stage_needs_a_trainer_that_changes_envs() -> None:
    """It is said before any env is made."""
    plan = {"by": "stage", "tasks": {"short": {"env": {"time_limit": 9}, "env_steps": 100}, "long": {}}}
    data = {**config().config.model_dump(mode="json"), "plan": plan}
    with pytest.raises(ConfigError, match="climb cannot change its envs in a run: use plan.by=slot or plan.by=episode"):
        make_trainer(validate(data, {}))
