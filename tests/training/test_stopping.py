"""When to evaluate and when to stop."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from gymnast.config.load import resolve
from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig, StopRule
from gymnast.errors import UsageError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.training.stopping import EvalCadence, make_cadence, make_rules

CATALOGUE = load_catalogue()


def config(**sections) -> RunConfig:
    """A run of nothing in particular."""
    base = {"env": {"id": "X-v0"}, "algo": {"id": "ppo"}, "train": {"env_steps": 1000}}
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}
    return RunConfig.model_validate(base)


def evaluations(cadence: EvalCadence, returns, step: int = 10) -> list[int]:
    """At which env steps an evaluation is due."""
    return [(i + 1) * step for i, value in enumerate(returns) if cadence.due((i + 1) * step, value)]


def test_evaluations_come_every_so_many_steps():
    assert evaluations(EvalCadence(30, 0, None), [None] * 12) == [30, 60, 90, 120]
    assert evaluations(EvalCadence(25, 0, None), [None] * 10) == [30, 60, 90]
    assert evaluations(EvalCadence(5, 0, None), [None] * 4) == [10, 20, 30, 40]


def test_no_evaluation_during_the_warm_up():
    assert evaluations(EvalCadence(20, 50, None), [None] * 9) == [50, 70, 90]


def test_evaluation_starts_at_once_when_training_looks_good_enough():
    returns = [None, 1.0, 99.0, 100.0, 3.0, 3.0, 3.0, 3.0]
    # Not before 100 is reached; then at once, and from there on whatever the training return does.
    assert evaluations(EvalCadence(20, 0, 100.0), returns) == [40, 60, 80]
    assert evaluations(EvalCadence(20, 60, 100.0), returns) == []
    assert evaluations(EvalCadence(20, 60, 100.0), [*returns, 200.0, 0.0, 0.0]) == [90, 110]
    assert evaluations(EvalCadence(20, 0, 100.0), [math.nan] * 5) == []


def test_a_resumed_cadence_goes_on_where_it_stood():
    whole, first = EvalCadence(25, 0, 5.0), EvalCadence(25, 0, 5.0)
    returns = [1.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    expected = evaluations(whole, returns)
    before = [step for step in (10, 20, 30) if first.due(step, returns[step // 10 - 1])]
    second = EvalCadence(25, 0, 5.0)
    second.load_state(first.state())
    after = [step for step in (40, 50, 60, 70) if second.due(step, returns[step // 10 - 1])]
    assert before + after == expected == [20, 50]


def test_the_cadence_comes_from_the_config():
    run = config(eval={"every": 70, "warmup": 30, "start_at": 5.0})
    assert make_cadence(run, make_plan(run)) == EvalCadence(70, 30, 5.0)
    run = config(eval={"start_fraction": 0.5}, spec={"solved_at": 10.0, "random_score": {"score": 4.0, "source": "x"}})
    assert make_cadence(run, make_plan(run)) == EvalCadence(50, 0, 7.0)


def test_rules_look_at_any_metric():
    rules = make_rules(
        config(
            train={"stop": [{"metric": "rollout/return_mean", "at_least": 3}, {"metric": "train/loss", "at_most": 0}]}
        ),
        CATALOGUE,
    )
    assert rules.reason({"rollout/return_mean": 2.9, "train/loss": 0.1}) is None
    assert rules.reason({}) is None and rules.reason({"rollout/return_mean": None}) is None
    assert rules.reason({"rollout/return_mean": math.nan}) is None
    assert rules.reason({"rollout/return_mean": 3.0}) == "stop rule met (rollout/return_mean ≥ 3)"
    assert rules.reason({"train/loss": 0.0}) == "stop rule met (train/loss ≤ 0)"
    assert rules.reason({"train/loss": -0.1}) == "stop rule met (train/loss ≤ 0)"


def test_a_rule_has_exactly_one_bound():
    for bounds in ({}, {"at_least": 1, "at_most": 2}):
        with pytest.raises(ValidationError, match="exactly one"):
            StopRule(metric="train/loss", **bounds)


def test_an_unknown_metric_is_found_before_training():
    with pytest.raises(UsageError, match="Did you mean 'rollout/return_mean'"):
        make_rules(config(train={"stop": [{"metric": "rollout/retrun_mean", "at_least": 1}]}), CATALOGUE)


@pytest.mark.parametrize(
    ("given", "row", "met"),
    [
        # Stable-Baselines3's name of the same number.
        ({"metric": "rollout/ep_rew_mean", "at_least": 5}, {"rollout/return_mean": 5.0}, True),
        ({"metric": "rollout/ep_rew_mean", "at_least": 5}, {"rollout/return_mean": 4.0}, False),
        # Its entropy_loss is −entropy: "at least −0.1" means an entropy of at most 0.1.
        ({"metric": "train/entropy_loss", "at_least": -0.1}, {"train/entropy": 0.05}, True),
        ({"metric": "train/entropy_loss", "at_least": -0.1}, {"train/entropy": 0.5}, False),
        ({"metric": "train/entropy_loss", "at_most": -0.5}, {"train/entropy": 0.6}, True),
        ({"metric": "train/entropy_loss", "at_most": -0.5}, {"train/entropy": 0.4}, False),
        # CleanRL halves its value loss.
        ({"metric": "losses/value_loss", "at_most": 1.0}, {"train/value_loss": 1.9}, True),
        ({"metric": "losses/value_loss", "at_most": 1.0}, {"train/value_loss": 2.1}, False),
    ],
)
def test_rules_in_other_libraries_names(given, row, met):
    rules = make_rules(config(train={"stop": [given]}), CATALOGUE)
    assert (rules.reason(row) is not None) == met


def test_solved_is_judged_by_evaluation_alone():
    rules = make_rules(config(spec={"solved_at": 475}), CATALOGUE)
    assert rules.is_solved({"eval/return_mean": 475.0}) and not rules.is_solved({"eval/return_mean": 474.9})
    assert not rules.is_solved({"rollout/return_mean": 500.0})
    assert rules.reason({"eval/return_mean": 480.0}).startswith("solved (eval/return_mean ≥ 475")


def test_rounding_does_not_keep_an_optimum_unsolved():
    rules = make_rules(config(spec={"solved_at": -13}), CATALOGUE)
    assert rules.is_solved({"eval/return_mean": -13.000000000000002}) and not rules.is_solved(
        {"eval/return_mean": -13.01}
    )


def test_an_exact_expectation_decides_where_there_is_one():
    rules = make_rules(config(spec={"solved_at": 0.7}), CATALOGUE)
    assert not rules.is_solved({"eval/return_mean": 0.75, "eval/exact_return": 0.69})
    assert rules.is_solved({"eval/return_mean": 0.65, "eval/exact_return": 0.71})
    assert rules.is_solved({"eval/return_mean": 0.75, "eval/exact_return": None})


def test_solved_need_not_stop():
    rules = make_rules(config(spec={"solved_at": 1}, train={"stop_when_solved": False}), CATALOGUE)
    assert rules.is_solved({"eval/return_mean": 2.0}) and rules.reason({"eval/return_mean": 2.0}) is None
    assert not make_rules(config(), CATALOGUE).is_solved({"eval/return_mean": 1e9})  # no threshold, never solved


def test_a_rule_from_the_command_line():
    resolved = resolve("CartPole-v1:ppo", ["train.stop=[{metric: eval/return_mean, at_least: 100}]"])
    assert make_rules(resolved.config, CATALOGUE).reason({"eval/return_mean": 120.0}).startswith("stop rule met")
