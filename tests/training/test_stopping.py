"""When to stop."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from gymnast.config.load import resolve
from gymnast.config.schema import RunConfig, StopRule
from gymnast.errors import UsageError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.training.keeping.stopping import make_rules

CATALOGUE = load_catalogue()


def config(**sections) -> RunConfig:
    """A run of nothing in particular."""
    base = {"env": {"id": "X-v0"}, "algo": {"id": "ppo"}, "train": {"env_steps": 1000}}
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}
    return RunConfig.model_validate(base)


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


def evaluation(mean: float, std: float, episodes: int = 101, exact: float | None = None) -> dict[str, float | None]:
    """The metrics of an evaluation."""
    names = ("eval/return_mean", "eval/return_std", "eval/episodes", "eval/exact_return")
    return dict(zip(names, (mean, std, float(episodes), exact), strict=True))


def test_solved_is_judged_by_evaluation_alone():
    rules = make_rules(config(spec={"solved_at": 475}), CATALOGUE)
    assert rules.is_solved(evaluation(475.0, 0.0)) and not rules.is_solved(evaluation(474.9, 0.0))
    assert not rules.is_solved({"rollout/return_mean": 500.0})
    assert rules.reason(evaluation(480.0, 0.0)) == "solved"


def test_a_mean_must_lie_two_standard_errors_above_the_threshold_unless_said_otherwise():
    rules = make_rules(config(spec={"solved_at": 475}), CATALOGUE)
    assert not rules.is_solved(evaluation(476.9, 10.0)) and rules.is_solved(evaluation(477.1, 10.0))
    plain = make_rules(config(spec={"solved_at": 475}, eval={"standard_errors": 0}), CATALOGUE)
    assert plain.is_solved(evaluation(475.0, 10.0)) and plain.is_solved(evaluation(475.0, 0.0, episodes=1))
    assert not rules.is_solved(evaluation(500.0, 0.0, episodes=1))  # one episode says nothing about noise


def test_rounding_does_not_keep_an_optimum_unsolved():
    rules = make_rules(config(spec={"solved_at": -13}), CATALOGUE)
    assert rules.is_solved(evaluation(-13.000000000000002, 0.0)) and not rules.is_solved(evaluation(-13.01, 0.0))


def test_an_exact_expectation_decides_where_there_is_one():
    rules = make_rules(config(spec={"solved_at": 0.7}), CATALOGUE)
    assert not rules.is_solved(evaluation(0.75, 0.0, exact=0.69))
    assert rules.is_solved(evaluation(0.65, 0.4, exact=0.71))
    assert rules.is_solved(evaluation(0.75, 0.0))


def test_solved_need_not_stop():
    rules = make_rules(config(spec={"solved_at": 1}, train={"stop_when_solved": False}), CATALOGUE)
    assert rules.is_solved({"eval/return_mean": 2.0}) and rules.reason({"eval/return_mean": 2.0}) is None
    assert not make_rules(config(), CATALOGUE).is_solved({"eval/return_mean": 1e9})  # no threshold, never solved


def test_a_rule_from_the_command_line():
    resolved = resolve("CartPole-v1:ppo", ["train.stop=[{metric: eval/return_mean, at_least: 100}]"])
    assert make_rules(resolved.config, CATALOGUE).reason({"eval/return_mean": 120.0}).startswith("stop rule met")
