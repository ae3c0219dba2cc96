"""Keys of other libraries that stand for several of ours, or follow others."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn, optim

from gymnast.config.load import resolve
from gymnast.errors import GymnastError


def config(*overrides: str, **settings: Any) -> Any:
    return resolve("CartPole-v1:ppo", overrides, settings=settings).config


def test_policy_kwargs_as_python_text():
    text = "policy_kwargs=dict(net_arch=dict(pi=[32], vf=[64, 64]), activation_fn=nn.ReLU, ortho_init=False, log_std_init=-1)"
    policy = config(text).policy
    assert (policy.hidden, policy.critic_hidden, policy.activation) == ([32], [64, 64], "relu")
    assert (policy.init, policy.log_std_init) == ("torch", -1)


def test_policy_kwargs_as_a_python_caller_writes_them():
    kwargs = {"net_arch": {"pi": [32], "vf": [16]}, "activation_fn": nn.ReLU, "optimizer_class": optim.Adam}
    found = config(policy_kwargs=kwargs | {"optimizer_kwargs": {"eps": 1e-7}})
    assert (found.policy.hidden, found.policy.critic_hidden, found.policy.activation) == ([32], [16], "relu")
    assert (found.algo.optimizer.id, found.algo.optimizer.eps) == ("adam", 1e-7)


@pytest.mark.parametrize("said", ["nn.ReLU", "th.nn.ReLU", "ReLU", "relu"])
def test_activation_fn(said: str):
    assert config(f"activation_fn={said}").policy.activation == "relu"
    assert config(activation_fn=nn.ELU).policy.activation == "elu"


@pytest.mark.parametrize("order", [["lr=3e-4", "anneal_lr=true"], ["anneal_lr=true", "lr=3e-4"]])
def test_anneal_lr_follows_the_rate_wherever_it_stands(order: list[str]):
    rate = config(*order).algo.learning_rate
    assert (rate.schedule, rate.start, rate.end) == ("linear", 3e-4, 0)


def test_anneal_lr_leaves_schedules_and_takes_them_away():
    preset = config().algo.learning_rate
    assert config("anneal_lr=true").algo.learning_rate == preset
    assert config("anneal_lr=false").algo.learning_rate == preset.start
    assert config("anneal_lr=false", "lr=[[0, 0.5], [1, 0.1]]").algo.learning_rate == 0.5
    assert config("anneal_lr=false", "lr=0.5").algo.learning_rate == 0.5


def test_the_rate_may_be_the_algorithms_default():
    assert resolve("Acrobot-v1:reinforce", ["anneal_lr=true"]).config.algo.learning_rate.end == 0


def test_clip_vloss_is_the_policys_range():
    assert config("clip_vloss=true", "clip_coef=0.3").algo.clip_range_vf == 0.3
    assert config("clip_vloss=false", "clip_range_vf=0.3").algo.clip_range_vf is None


def test_origins_name_what_was_written():
    origins = resolve("CartPole-v1:ppo", ["policy_kwargs=dict(net_arch=[8])"]).origins
    assert origins["policy.hidden"] == "command line (policy_kwargs=dict(net_arch=[8]))"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("policy_kwargs=dict(net_arch=[8], activation=nn.ReLU)", "'activation' is not supported"),
        ("policy_kwargs=__import__('os').system('true')", "Python code that is not run"),
        ("policy_kwargs=3", "must be a mapping"),
        ("activation_fn=Swish", "'nn.Swish' is not supported"),
        ("net_arch=[8, wide]", "net_arch must be a list of sizes"),
        ("anneal_lr=3", "write anneal_lr=true or anneal_lr=false"),
        ("verbose=7", "'log.verbose': input should be 0, 1 or 2"),
    ],
)
def test_wrong_values_are_sentences(said: str, sentence: str):
    with pytest.raises(GymnastError) as caught:
        config(said)
    assert sentence in str(caught.value)
