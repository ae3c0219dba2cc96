"""Diagnosis: the true cause of a real faulty run comes first, and the command it suggests makes a better run."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from recorded_runs import CARTPOLE, FAULTS, Recorded, recorded

from gymnast.config.load import resolve
from gymnast.metrics.alerts.facts import Facts, peak
from gymnast.metrics.alerts.ordinary import USUAL, learning_rate, orders_outside
from gymnast.metrics.diagnosis.causes import CAUSES
from gymnast.metrics.diagnosis.diagnosis import Diagnosis, diagnose
from gymnast.metrics.diagnosis.experiment import command

TRUE_CAUSES = {
    "rate too high": "learning_rate_high",
    "saturated": "learning_rate_high",
    "clip too narrow": "clip_range_low",
    "gradients clipped away": "grad_clip_low",
    "rewards too large": "reward_scale",
    "rewards too small": "reward_scale",
    "bonus too large": "entropy_bonus_high",
    "actions too narrow": "exploration_low",
    "actions too wide": "exploration_high",
    "another evaluation": "evaluation_differs",
    "few updates": "few_updates",
}
"""Name of a run in `FAULTS` → the cause that made it."""


def of(run: Recorded, **known: Any) -> Diagnosis:
    return diagnose("abcde", run.config, run.rows, best=run.best, saved=run.saved, **known)


def faulty(name: str) -> Recorded:
    reference, overrides, env_steps, _ = FAULTS[name]
    return recorded(reference, *overrides, env_steps=env_steps)


@pytest.mark.parametrize("name", TRUE_CAUSES)
def test_the_true_cause_comes_first(name: str) -> None:
    page = of(faulty(name))
    assert page.causes[0].cause.id == TRUE_CAUSES[name]
    assert page.causes[0].confidence > 0.5 and page.causes[0].evidence
    assert sum(one.confidence for one in page.causes) < 1
    assert [one.confidence for one in page.causes] == sorted((one.confidence for one in page.causes), reverse=True)
    assert page.health in ("stuck", "broken", "learning")


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("rate too high", "algo.learning_rate", lambda value: 1e-3 <= peak(value) <= 1e-2),
        ("clip too narrow", "algo.clip_range", lambda value: value == 0.2),
        ("gradients clipped away", "algo.max_grad_norm", lambda value: value == 0.5),
        ("rewards too large", "algo.normalize_reward", lambda value: value is True),
        ("bonus too large", "algo.ent_coef", lambda value: value == 0.005),
        ("few updates", "algo.n_steps", lambda value: 5 <= value <= 64),
    ],
)
def test_the_command_is_the_run_with_the_cause_removed(name: str, key: str, value: Any) -> None:
    """It resolves, its own settings stay, and nothing but what is suggested changes."""
    run = faulty(name)
    experiment = of(run).experiment
    assert experiment is not None
    words = shlex.split(experiment.command)
    assert words[:3] == ["gymnast", "train", run.config["name"]] and words[-2:] == ["--seed", "0"]
    new = resolve(words[2], words[3:-2]).config.model_dump(mode="json")
    section, _, last = key.partition(".")
    assert value(new[section][last])
    changed = {name.partition(".")[2] for name in experiment.changes if name.startswith(f"{section}.")}
    for other in run.config[section].keys() - changed:
        assert new[section][other] == run.config[section][other], other
    assert new["train"]["env_steps"] == run.config["train"]["env_steps"]
    assert new["env"]["wrappers"] == run.config["env"]["wrappers"]


@pytest.mark.learning
def test_the_suggested_run_is_better() -> None:
    run = faulty("rate too high")
    experiment = of(run).experiment
    assert experiment is not None
    words = shlex.split(experiment.command)
    better = recorded(words[2], *words[3:-2], seed=1)
    assert (of(better).score or 0) > 0.5 > 0.1 > (of(run).score or 0)


def test_a_solved_run_needs_nothing() -> None:
    page = of(recorded(CARTPOLE, seed=1))
    assert page.health == "solved" and page.causes == [] and page.experiment is None
    assert page.verdict.startswith("Solved: ") and page.verdict.endswith(" where 475 is asked for.")


def test_a_broken_run_says_so() -> None:
    run = faulty("few updates")
    rows = [*run.rows[:-1], run.rows[-1] | {"nonfinite": ["train/loss"]}]
    page = diagnose("abcde", run.config, rows)
    assert page.health == "broken" and "not_finite" in [alert.id for alert in page.alerts]


def test_without_rows_nothing_is_claimed() -> None:
    page = diagnose("abcde", resolve(CARTPOLE).config.model_dump(mode="json"), [])
    assert (page.health, page.causes, page.alerts, page.charts) == ("unknown", [], [], [])


def test_the_difference_to_the_preset_plays_no_part() -> None:
    """The same run under another name has the same causes; only the command is another."""
    run = faulty("rate too high")
    renamed = diagnose("abcde", run.config | {"name": "CartPole-v1:a_preset_that_is_gone"}, run.rows, best=run.best)
    known = of(run)
    assert [(one.cause.id, one.weight, one.changes) for one in renamed.causes] == [
        (one.cause.id, one.weight, one.changes) for one in known.causes
    ]
    assert renamed.experiment is not None
    save, _, train = renamed.experiment.command.partition(" && ")
    assert save == "gymnast config save abcde CartPole-v1:ppo_abcde"
    assert train.startswith("gymnast train CartPole-v1:ppo_abcde algo.learning_rate=lin_")


def test_what_was_tried_is_not_suggested_again() -> None:
    run = faulty("rate too high")
    first = of(run).experiment
    assert first is not None
    tried = resolve(CARTPOLE, [f"{key}={value}" for key, value in first.changes.items()]).config.model_dump(mode="json")
    second = of(run, tried=[tried]).experiment
    assert second is None or second.changes != first.changes


def test_values_with_spaces_and_quotes_survive_the_command_line() -> None:
    saved = resolve(CARTPOLE, ["env.wrappers=[{id: reward_scale, factor: 2}]"])
    changes = {"algo.optimizer.betas": [0.9, 0.999], "algo.normalize_reward": True}
    line = command("abcde", saved.config.model_dump(mode="json"), changes, saved)
    again = resolve(CARTPOLE, shlex.split(line)[3:-2]).config
    assert again.env.wrappers[0].args == {"factor": 2} and again.algo.optimizer.betas == (0.9, 0.999)


def test_the_page_is_plain_json() -> None:
    page = json.loads(json.dumps(of(faulty("rate too high")).as_json()))
    assert page["causes"][0]["evidence"][0].keys() == {"weight", "says"}
    assert page["alerts"][0]["rewind"].startswith("gymnast rewind abcde --to ")
    assert {"rollout/return_mean", "train/approx_kl"} <= {chart["metric"] for chart in page["charts"]}
    assert all(len(chart["points"]) <= 48 for chart in page["charts"])


# --- what is usual --------------------------------------------------------------------------------------------------


def test_every_cause_of_a_setting_is_in_the_list() -> None:
    known = {cause.id for cause in CAUSES}
    assert len(known) == len(CAUSES)
    assert {name for usual in USUAL for name in (usual.below, usual.above) if name is not None} <= known


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [(0.5, 0.1, 1, 0), (10, 0.1, 1, 1), (0.001, 0.1, 1, -2), (0, 0.8, 1, -2.8), (1e30, 0.1, 1, 5), (2, 0, 1, 0.30103)],
)
def test_distance_from_what_is_usual(value: float, low: float, high: float, expected: float) -> None:
    assert orders_outside(value, low, high) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "reference",
    ["CartPole-v1:ppo", "Pendulum-v1:ppo", "Acrobot-v1:ppo", "MountainCar-v0:ppo", "FrozenLake-v1:ppo", "Taxi-v4:ppo"],
)
def test_the_good_learning_rate_is_near_what_presets_found(reference: str) -> None:
    """The rule knows the budget, the number of updates and the kind of network, and nothing of the preset's own rate."""
    config = resolve(reference).config.model_dump(mode="json")
    own = peak(config["algo"].pop("learning_rate"))
    assert own is not None and own / 4 <= learning_rate(Facts(config)) <= own * 4


def test_numbers_of_schedules_and_of_nonsense() -> None:
    points = {"schedule": "piecewise", "points": [[0, 1e-3], [0.5, 2e-3]]}
    assert peak(points) == 2e-3 and peak({"schedule": "linear", "start": 3e-4, "end": 0.0}) == 3e-4
    assert peak(True) is None and peak("auto") is None and peak(None) is None and peak(7) == 7.0
