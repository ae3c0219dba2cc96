"""A run with reward terms and drawn parameters: what its files, its evaluation and its report say."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import pytest

import gymnast

SETTINGS = (
    "env.rewards.terms.centre.shaper=cartpole_centring",
    "env.rewards.terms.centre.weight=3",
    "env.rewards.terms.left.costs={push left: 0.25}",
    "env.rewards.terms.two=1 + 1",
    "env.randomise={length: [0.4, 0.6], force_mag: {choices: [8, 12]}}",
    "eval.env=[{}, {name: usual, randomise: {}}]",
    "eval.every=2048",
    "eval.episodes=20",
    "eval.start_fraction=null",
    "train.stop_when_solved=false",
    "train.env_steps=2048",
    "log.video=false",
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One short run, with time for its table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gymnast.training.showing.ending.allowance", lambda ran: 20.0)
        return gymnast.train("CartPole-v1:ppo", *SETTINGS, runs_dir=tmp_path_factory.mktemp("runs"))


def test_each_term_is_logged_and_the_score_has_none_of_them(result: Any) -> None:
    rows = result.run.metrics(
        "rollout/return_mean", "rollout/length_mean", "rollout/reward_mean", "train/reward_mean",
        "rollout/reward_terms/centre", "rollout/reward_terms/left",
        "rollout/reward_terms/two",
    )  # fmt: skip
    last = {name: values[-1] for name, values in rows.items()}
    assert last["rollout/return_mean"] == last["rollout/length_mean"]  # a point per step
    assert last["rollout/reward_mean"] == 1
    assert last["rollout/reward_terms/centre"] < 0
    assert last["rollout/reward_terms/two"] == 2 * last["rollout/length_mean"]  # sums over the episodes of the window
    # Half of all pushes go to the left, and each of them costs a quarter.
    assert -0.2 < last["rollout/reward_terms/left"] / last["rollout/length_mean"] < -0.05
    assert 2.5 < last["train/reward_mean"] < 2.95


def test_the_rollout_table_has_a_column_per_term(result: Any) -> None:
    table = next((result.run.folder / "rollouts").glob("*.csv"))
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for before, after in itertools.pairwise(rows):
        position = float(after["obs.cart position"])
        assert float(before["term.centre"]) == pytest.approx(-3 * (position / 2.4) ** 2, rel=1e-4, abs=1e-9)
        assert float(before["term.left"]) == (-0.25 if before["action_label"] == "push left" else 0)
        assert float(before["reward"]) == pytest.approx(
            3 + float(before["term.centre"]) + float(before["term.left"]), rel=1e-5
        )
        assert float(before["env_reward"]) == 1


def test_the_evaluation_is_by_parameter(result: Any) -> None:
    found = gymnast.load(str(result.run.folder)).evaluate(20)
    told = found.as_json()
    lengths = [part for part in told["by_parameter"] if part["parameter"] == "length"]
    assert sum(part["episodes"] for part in lengths) == len(found.returns)
    mean = sum(part["mean"] * part["episodes"] for part in lengths if part["episodes"]) / len(found.returns)
    assert mean == pytest.approx(found.mean)
    assert [part["label"] for part in told["by_parameter"] if part["parameter"] == "force_mag"] == ["8", "12"]
    usual = told["settings"]["usual"]
    assert usual["by_parameter"] == []
    assert usual["differences"] == {"randomise": {}}


def test_report_and_metrics_tell_it_too(result: Any) -> None:
    metric = result.run.metrics("eval/return_by/force_mag_8")["eval/return_by/force_mag_8"]
    text = Path(result.run.folder, "report.md").read_text(encoding="utf-8")
    assert "by what was drawn for its episodes" in text
    assert "length_0.4 … 0.44" in text
    assert f"{metric[-1]:.4g}"[:3] in text
    assert "drawn for the episode" in Path(result.run.folder, "report.html").read_text(encoding="utf-8")


def test_a_trace_holds_what_was_drawn_and_each_term(result: Any) -> None:
    trace = gymnast.load(str(result.run.folder)).trace(seed=3)
    assert set(trace.infos["parameters"]) == {"length", "force_mag"}
    assert all(set(terms) == {"centre", "left", "two"} for terms in trace.terms)
    assert trace.ret == len(trace)
