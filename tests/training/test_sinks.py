"""Sinks of plug-ins: what they hear of a run and when, and that nothing they do touches it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gated_env  # noqa: F401 - registers the env
import pytest
from installed import Install
from runs_alike import PER_ITERATION, Watcher, assert_same_end, resume, run, small

from gymnast.config.load import Resolved
from gymnast.errors import EnvError
from gymnast.metrics.history import History
from gymnast.metrics.sinks.jsonl import AMENDS, NOT_METRICS, STEP, MetricRows
from gymnast.plugins import PluginError
from gymnast.runs import checkpoint
from gymnast.runs.store import Run

NOTING = '''
"""A sink that remembers all it is told, and fails where it is asked to."""
from gymnast.metrics.sinks.base import Sink as Base

TOLD, FAILS = [], {}

class Sink(Base):
    def __init__(self, run_folder, config):
        super().__init__(run_folder, config)
        self.note("made", None, (run_folder, config))

    def write(self, row):
        self.note("write", row["env_steps"], dict(row))

    def amend(self, step, metrics):
        self.note("amend", step, dict(metrics))

    def close(self):
        self.note("close", None, None)

    def note(self, what, step, content):
        TOLD.append((what, step, content))
        if FAILS.get(what) == sum(told[0] == what for told in TOLD):
            raise RuntimeError("the wire\\nis cut")
'''
CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
Told = list[tuple[str, int | None, Any]]


@pytest.fixture
def noting(install: Install) -> Any:
    """The module of a sink that takes notes; another package brings one that only listens."""
    install("noting", NOTING, sinks="noting = noting")
    install("quiet_sink", NOTING, sinks="listening = quiet_sink")
    sys.modules.pop("noting", None)
    sys.modules.pop("quiet_sink", None)
    import noting  # type: ignore[import-not-found]

    return noting


def told_to(module: str) -> Told:
    """What a sink was told, but for its making."""
    return [told for told in sys.modules[module].TOLD if told[0] != "made"]


def config(*sinks: str, **changes: Any) -> Resolved:
    """Six iterations, evaluations after the second, fourth and sixth."""
    return small("ppo", CARTPOLE, **{**changes, "log": {"window": 5, "sinks": list(sinks)}})


def rows_of(run: Run) -> list[dict[str, Any]]:
    """As they are in the file, without what is said of the rows themselves."""
    return [{k: v for k, v in row.items() if k not in NOT_METRICS} for row in MetricRows(run.metrics_path)]


class After(Watcher):
    """Does something after an iteration."""

    def __init__(self, rows: int, do: Callable[[], Any]) -> None:
        super().__init__()
        self.rows, self.do = rows, do

    def update(self, history: History, *more: Any) -> None:
        """Now."""
        super().update(history, *more)
        if history.rows == self.rows:
            self.do()


def test_every_row_in_order_and_the_end(noting: Any, tmp_path: Path) -> None:
    """What is in the run's own file; the sink knows the run, and is closed once, after everything."""
    result = run(config("noting"), tmp_path)
    what, _, (folder, known) = noting.TOLD[0]
    assert what == "made" and folder == result.run.folder
    assert known.env.id == "CartPole-v1" and known.log.sinks == ["noting"]
    told = told_to("noting")
    assert [(what, step) for what, step, _ in told] == [
        *(("write", i * PER_ITERATION) for i in range(1, 7)),
        ("close", None),
    ]
    for (_, _, heard), row in zip(told, rows_of(result.run), strict=False):
        assert {name: value for name, value in row.items() if value is not None} == {
            name: value for name, value in heard.items() if value is not None
        }


def test_late_results_carry_the_step_of_their_weights(noting: Any, tmp_path: Path) -> None:
    """An evaluation beside training ends after the rows that follow its own, in a sink as in the file."""
    gate = tmp_path / "gate"
    evaluation = {"mode": "worker", "env": {"kwargs": {"gate": str(gate)}}}
    sinks = {"window": 5, "sinks": ["noting"]}
    resolved = small("ppo", {"id": "Gated-v0", "module": "gated_env"}, eval=evaluation, log=sinks)
    result = run(resolved, tmp_path, After(3, gate.touch))
    lines = [json.loads(line) for line in result.run.metrics_path.read_text().splitlines()]
    told = told_to("noting")
    assert told.pop()[0] == "close"
    assert [(what, step) for what, step, _ in told] == [
        ("amend" if AMENDS in line else "write", line[STEP]) for line in lines
    ]
    late = {step: content for what, step, content in told if what == "amend"}
    assert 2 * PER_ITERATION in late
    order = [(what, step) for what, step, _ in told]
    assert order.index(("amend", 2 * PER_ITERATION)) > order.index(("write", 3 * PER_ITERATION))
    rows = {row[STEP]: row for row in rows_of(result.run)}
    for step, metrics in late.items():
        assert metrics["eval/return_mean"] is not None
        assert {name: rows[step][name] for name in metrics} == metrics


FAULTS = [("write", 1), ("write", 3), ("close", 1)]


@pytest.mark.parametrize(("what", "nth"), FAULTS)
def test_a_sink_that_raises_costs_only_itself(what: str, nth: int, noting: Any, tmp_path: Path) -> None:
    """One warning and no further row; another sink hears everything, and the run is the same to the bit."""
    plain = run(config(), tmp_path)
    noting.FAILS[what] = nth
    watcher = Watcher()
    result = run(config("noting", "listening"), tmp_path, watcher)
    (warning,) = watcher.warnings
    assert warning == "The sink Sink failed and gets no more rows (RuntimeError: the wire is cut)."
    rows = 6 if what == "close" else nth
    assert [step for what, step, _ in told_to("noting") if what == "write"] == [
        i * PER_ITERATION for i in range(1, rows + 1)
    ]
    assert [what for what, _, _ in told_to("quiet_sink")] == ["write"] * 6 + ["close"]
    assert result.stop_reason == "budget spent" and result.run.status().state == "finished"
    assert_same_end(plain.run, result.run)


def test_a_sink_that_cannot_take_late_results(noting: Any, tmp_path: Path) -> None:
    """The same where an amendment raises: the run's own file has it."""
    noting.FAILS["amend"] = 1
    gate = tmp_path / "gate"
    evaluation = {"mode": "worker", "env": {"kwargs": {"gate": str(gate)}}}
    gated: dict[str, Any] = {"id": "Gated-v0", "module": "gated_env"}
    watcher = After(3, gate.touch)
    log = {"window": 5, "sinks": ["noting"]}
    result = run(small("ppo", gated, eval=evaluation, log=log), tmp_path, watcher)
    assert len(watcher.warnings) == 1
    assert [told[0] for told in told_to("noting")] == ["write"] * 3 + ["amend"]
    assert [row["eval/return_mean"] is not None for row in rows_of(result.run)] == [False, True] * 3
    plain = run(small("ppo", gated, eval={**evaluation, "mode": "inprocess"}), tmp_path)
    assert_same_end(plain.run, result.run)


def test_each_attempt_tells_its_own_rows(noting: Any, tmp_path: Path) -> None:
    """A stop closes the sink; a resume makes another one for the same folder, which goes on after the checkpoint."""
    stopped = run(config("noting"), tmp_path, Watcher(stop_after=2))
    assert [told[0] for told in noting.TOLD] == ["made", "write", "write", "close"]
    noting.TOLD.clear()
    resume(config("noting"), stopped.run)
    assert noting.TOLD[0][2][0] == stopped.run.folder
    assert [step for what, step, _ in told_to("noting") if what == "write"] == [i * PER_ITERATION for i in range(3, 7)]
    assert [told[0] for told in noting.TOLD].count("close") == 1


def test_a_run_that_fails_closes_its_sinks(noting: Any, tmp_path: Path) -> None:
    """Whatever ended it."""

    def fail() -> None:
        raise EnvError("the emulator is gone")

    with pytest.raises(EnvError, match="the emulator is gone"):
        run(config("noting"), tmp_path, After(2, fail))
    assert [told[0] for told in told_to("noting")] == ["write", "write", "close"]


def test_a_sink_that_cannot_be_made_costs_only_itself(noting: Any, tmp_path: Path) -> None:
    """No server to log to, say: a warning, and the run is the same."""
    noting.FAILS["made"] = 1
    watcher = Watcher()
    result = run(config("noting", "listening"), tmp_path, watcher)
    assert len(watcher.warnings) == 1 and "the wire is cut" in watcher.warnings[0]
    assert [what for what, _, _ in told_to("quiet_sink")] == ["write"] * 6 + ["close"]
    assert_same_end(run(config(), tmp_path).run, result.run)


WRONG = {"nothing_here": "has no `Sink`", "elsewhere": "No installed package has the sink 'elsewhere'. Known: "}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_is_found_before_anything_is_written(name: str, install: Install, tmp_path: Path) -> None:
    """Nor is an env made for it."""
    install("nothing_here", "Sink = None\n", sinks="nothing_here = nothing_here")
    root = tmp_path / "runs"
    with pytest.raises(PluginError, match=WRONG[name]):
        run(config(name), root)
    assert not root.exists()


LOUD = """
from typing import Literal
from gymnast.algorithms.ppo import PPO
from gymnast.config.algorithms import PPOConfig

class Config(PPOConfig):
    id: Literal["loud"]

class Algorithm(PPO):
    def loss(self, outputs, batch, c):
        loss = super().loss(outputs, batch, c)
        loss.statistics["loud/volume"] = outputs["value"] * 0.0 + 11.0
        return loss
"""


def test_metrics_in_no_catalogue_are_kept(noting: Any, install: Install, tmp_path: Path) -> None:
    """Of an algorithm of a plug-in: in every row of the file, of a sink and of the checkpoint, also after a resume."""
    install("loud", LOUD, algorithms="loud = loud")
    loud = {"id": "loud", "n_steps": 16, "batch_size": 32, "n_epochs": 2, "learning_rate": 1e-2}
    data = config("noting", train={"env_steps": 6 * PER_ITERATION, "stop_when_solved": False}).config.model_dump(
        mode="json"
    )
    resolved = Resolved(type(config().config).model_validate({**data, "algo": loud}))
    stopped = run(resolved, tmp_path, Watcher(stop_after=2)).run
    finished = resume(resolved, stopped).run
    rows = rows_of(finished)
    assert [row["loud/volume"] for row in rows] == [11.0] * 6
    assert [content["loud/volume"] for what, _, content in told_to("noting") if what == "write"] == [11.0] * 6
    assert checkpoint.load_latest(finished.folder)[0].manifest.metrics["loud/volume"] == 11.0
