"""Cadences in env steps or vec steps."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gymnast.config.load import resolve
from gymnast.config.plan import make_plan
from gymnast.config.schema import EvalConfig
from gymnast.config.steps import in_env_steps
from gymnast.errors import ConfigError


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (500, 500),
        ("500", 500),
        ("500 env_steps", 500),
        ("1e3", 1000),
        ("500 vec_steps", "500 vec_steps"),
        ("500vec_steps", "500 vec_steps"),
        (" 1_000 Vec-Steps ", "1000 vec_steps"),
        ("2e3 vec steps", "2000 vec_steps"),
        ("12,500 vec steps", "12500 vec_steps"),
    ],
)
def test_amounts(said, kept):
    assert EvalConfig(every=said).every == kept


@pytest.mark.parametrize(
    "wrong", ["500 steps", "vec_steps", "0 vec_steps", "-5 vec_steps", "1.5 vec_steps", 0, -1, 1.5]
)
def test_what_is_no_cadence(wrong):
    with pytest.raises(ValidationError):
        EvalConfig(every=wrong)


def test_a_wait_may_be_nothing_and_a_cadence_may_not():
    assert EvalConfig(warmup=0).warmup == 0
    with pytest.raises(
        ConfigError, match=r"'eval.every': '5 steps' is not a number of steps: write a number of env steps"
    ):
        resolve("CartPole-v1:ppo", ["eval.every=5 steps"])


def test_both_axes_are_the_same_plan():
    """For every cadence, whatever the number of envs."""
    vec = [
        "eval.every=300 vec_steps",
        "eval.warmup=20 vec_steps",
        "save_freq=40 vec_steps",
        "resume_every=64 vec_steps",
    ]
    env = ["eval.every=2400", "eval.warmup=160", "save_freq=320", "resume_every=512"]
    plans = [
        make_plan(resolve("CartPole-v1:ppo", ["n_envs=8", "batch_size=0.25", *words]).config) for words in (vec, env)
    ]
    for name in ("eval_every", "eval_warmup", "checkpoint_every", "resume_every"):
        assert getattr(plans[0], name) == getattr(plans[1], name), name
    assert plans[0].reasons["eval.every"] == "2,400 = 300 vec steps × 8 envs"
    assert (in_env_steps("300 vec_steps", 8), in_env_steps(300, 8)) == (2400, 300)
