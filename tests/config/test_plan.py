"""What `auto`, fractions and missing values become, each with its reason."""

from __future__ import annotations

import pytest

from gymnast.config.plan import EVAL_ENVS, NATIVE_EVAL_ENVS, eval_envs, make_plan
from gymnast.config.schema import RunConfig


def config(**sections) -> RunConfig:
    base = {"env": {"id": "X-v0", "n_envs": 4}, "algo": {"id": "ppo"}, "train": {"env_steps": 1000}}
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}
    return RunConfig.model_validate(base)


def test_env_steps_give_vec_steps_and_the_other_way_round():
    plan = make_plan(config(train={"env_steps": 1001}))
    assert (plan.env_steps, plan.vec_steps) == (1001, 251)  # rounded up: the budget is never undercut
    assert plan.reasons["train.vec_steps"] == "251 = 1,001 env steps ÷ 4 envs"
    plan = make_plan(config(train={"env_steps": None, "vec_steps": 30}))
    assert (plan.env_steps, plan.vec_steps) == (120, 30)
    assert plan.reasons["train.env_steps"] == "120 = 30 vec steps × 4 envs"


def test_auto_envs():
    plan = make_plan(config(env={"n_envs": "auto"}))
    assert plan.n_envs == 8 and plan.reasons["env.n_envs"].startswith("8: ")
    assert "env.n_envs" not in make_plan(config()).reasons
    plan = make_plan(config(env={"n_envs": "auto"}), recommended=(32, "32: measured"))
    assert (plan.n_envs, plan.vec_steps) == (32, 32) and plan.reasons["env.n_envs"] == "32: measured"
    assert make_plan(config(), recommended=(32, "32: measured")).n_envs == 4  # a number stays what it is


def test_steps_per_rollout():
    assert make_plan(config(algo={"n_steps": 16})).n_steps == 16
    plan = make_plan(config(algo={"n_steps": "auto"}))
    assert plan.n_steps == 128 and "measured" in plan.reasons["algo.n_steps"]
    assert make_plan(config(algo={"n_steps": "auto"}), n_steps=64).n_steps == 64


@pytest.mark.parametrize(
    ("sections", "horizon", "expected"),
    [
        ({}, None, 1000),
        ({"spec": {"horizon": 200}}, None, 200),
        ({"spec": {"horizon": 200}}, 300, 300),  # what the env itself says
        ({"spec": {"horizon": 200}, "env": {"time_limit": 50}}, 300, 50),
        ({"env": {"time_limit": 50}, "algo": {"max_steps": 20}}, 300, 20),
        ({"algo": {"episodes_per_env": 3}}, 100, 300),
    ],
)
def test_reinforce_has_room_for_its_longest_episodes(sections, horizon, expected):
    sections = {**sections, "algo": {"id": "reinforce", **sections.get("algo", {})}}
    plan = make_plan(config(**sections), horizon=horizon)
    assert plan.n_steps == expected and "longest episode" in plan.reasons["algo.max_steps"]


def test_cadences():
    plan = make_plan(config())
    assert (plan.eval_every, plan.checkpoint_every) == (50, 100)
    assert "a twentieth" in plan.reasons["eval.every"] and "a tenth" in plan.reasons["train.checkpoint_every"]
    plan = make_plan(config(eval={"every": 7}, train={"checkpoint_every": 9}))
    assert (plan.eval_every, plan.checkpoint_every) == (7, 9) and "eval.every" not in plan.reasons
    tiny = make_plan(config(train={"env_steps": 3}))
    assert (tiny.eval_every, tiny.checkpoint_every) == (1, 1)


def test_a_fraction_of_the_rollout():
    plan = make_plan(config(algo={"n_steps": 16, "batch_size": 0.25}))
    assert plan.reasons["algo.batch_size"] == "16 = 0.25 of 4 envs × 16 steps"
    assert "algo.batch_size" not in make_plan(config(algo={"n_steps": 16, "batch_size": 16})).reasons


def test_when_evaluation_starts():
    score = {"score": 20.0, "source": "x"}
    assert make_plan(config()).eval_start_at is None
    assert make_plan(config(eval={"start_at": 3.0}, spec={"solved_at": 9})).eval_start_at == 3.0
    plan = make_plan(config(eval={"start_fraction": 0.9}, spec={"solved_at": 475, "random_score": score}))
    assert plan.eval_start_at == pytest.approx(20 + 0.9 * 455)
    assert "0.9 of the way from random (20) to solved (475)" in plan.reasons["eval.start_at"]
    # Returns below zero: nine tenths of the way up from random, not nine tenths of the threshold.
    score = {"score": -500.0, "source": "x"}
    plan = make_plan(config(eval={"start_fraction": 0.9}, spec={"solved_at": -100, "random_score": score}))
    assert plan.eval_start_at == pytest.approx(-140)
    assert make_plan(config(eval={"start_fraction": 0.5}, spec={"solved_at": 10})).eval_start_at == 5.0
    assert make_plan(config(eval={"start_fraction": 0.5})).eval_start_at is None  # nothing to measure it by


def test_slots_of_an_evaluation():
    assert eval_envs(config(), native=True) == NATIVE_EVAL_ENVS == 100
    assert eval_envs(config(), native=False) == EVAL_ENVS == 20
    assert eval_envs(config(eval={"episodes": 5}), native=True) == 5
    assert eval_envs(config(eval={"n_envs": 7}), native=True) == 7
    assert eval_envs(config(eval={"n_envs": 7, "episodes": 3}), native=False) == 3
