"""One update: bad gradients never reach the weights, clipping is exact, and every algorithm says how far it moved."""

from __future__ import annotations

import math

import pytest
import torch
from gymnasium import spaces

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.algorithms import A2CConfig, OptimizerConfig, PPOConfig, ReinforceConfig
from gymnast.config.schema import PolicyConfig
from gymnast.errors import NonFiniteError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch
from gymnast.training.update import Learner, gradients, update

N = 32
CONFIGS = {
    "ppo": PPOConfig(id="ppo", batch_size=8, n_epochs=2),
    "a2c": A2CConfig(id="a2c"),
    "reinforce": ReinforceConfig(id="reinforce", baseline="learned"),
}


def numbers(config) -> dict[str, float]:
    return {name: value for name, value in config if isinstance(value, float)}


class Parts:
    """A policy, its batch of random samples, and what an update needs."""

    def __init__(self, config, network: PolicyConfig | None = None) -> None:
        space = spaces.Box(-1, 1, (4,))
        self.policy = ActorCritic(network or PolicyConfig(hidden=[8]), space, spaces.Discrete(3))
        self.flat = FlatParameters(self.policy)
        self.optimizer = make_optimizer(self.flat, config.optimizer)
        self.algorithm = make_algorithm(config, 1)
        self.c = numbers(config)
        generator = torch.Generator().manual_seed(0)
        obs = torch.randn(N, 4, generator=generator)
        with torch.no_grad():
            noise = self.policy.distribution.noise((N,), generator)
            acted = self.policy.act(obs, noise)
            log_prob = self.policy.distribution.evaluate(acted["params"], acted["action"])[0]
            value = self.policy.values(obs)
        advantage, target = torch.randn(2, N, generator=generator).unbind(0)
        self.batch = Batch(
            {
                "obs": obs,
                "action": acted["action"],
                "log_prob": log_prob,
                "value": value,
                "advantage": advantage,
                "target": target,
            }
        )

    def learner(self) -> Learner:
        generator = torch.Generator().manual_seed(0)
        return Learner(self.policy, self.flat, self.optimizer, self.algorithm, generator)

    def update(self, **c: float):
        return update(self.learner(), self.batch, self.c | c)


BAD = [
    (name, field, bad) for name in CONFIGS for field in ("advantage", "target", "obs") for bad in (math.nan, math.inf)
]


@pytest.mark.parametrize(("name", "field", "bad"), [*BAD, ("ppo", "log_prob", math.nan)])
def test_a_bad_number_raises_and_leaves_weights_and_moments_alone(name, field, bad):
    parts = Parts(CONFIGS[name])
    parts.algorithm.batch_size = lambda samples: samples  # one minibatch, so that the bad sample is in the first
    parts.batch[field][3] = bad
    weights = parts.flat.values.clone()
    moments = {key: tensor.clone() for key, tensor in parts.optimizer.state().items()}
    with pytest.raises(NonFiniteError, match="weights are unchanged"):
        parts.update()
    assert torch.equal(parts.flat.values, weights)
    for key, tensor in parts.optimizer.state().items():
        assert torch.equal(tensor, moments[key])


def gradient_of(parts: Parts) -> torch.Tensor:
    with torch.inference_mode():
        gradients(parts.learner(), parts.batch, parts.c)
        return parts.flat.grads.clone()


class Descent:
    """Plain gradient descent, which shows the gradient that was applied."""

    def __init__(self, flat: FlatParameters) -> None:
        self.flat = flat

    def step(self, learning_rate: float) -> None:
        self.flat.values.sub_(self.flat.grads, alpha=learning_rate)

    def state(self) -> dict:
        return {}


@pytest.mark.parametrize("limit", [1e-3, 0.5, 1e6, None])
def test_the_gradient_is_scaled_down_to_the_limit(limit):
    parts = Parts(A2CConfig(id="a2c"))
    gradient = gradient_of(parts)
    norm = float(gradient.norm())
    assert 0.5 < norm < 1e6
    parts.optimizer = Descent(parts.flat)
    before = parts.flat.values.clone()
    del parts.c["max_grad_norm"]
    result = parts.update(learning_rate=1.0, **({} if limit is None else {"max_grad_norm": limit}))
    applied = before - parts.flat.values
    scale = 1.0 if limit is None or limit > norm else limit / norm
    torch.testing.assert_close(applied, gradient * scale, rtol=1e-4, atol=1e-6)
    assert result.statistics["train/grad_norm"] == pytest.approx(norm, rel=1e-5)  # as it was before clipping


@pytest.mark.parametrize("network", [PolicyConfig(hidden=[8]), PolicyConfig(hidden=[8], layer_norm=True)])
def test_gradients_of_an_earlier_minibatch_are_forgotten(network):
    parts = Parts(A2CConfig(id="a2c"), network)
    first = gradient_of(parts) if parts.policy.by_hand else None
    with torch.no_grad():
        gradients(parts.learner(), parts.batch, parts.c)
        once = parts.flat.grads.clone()
        gradients(parts.learner(), parts.batch, parts.c)
    assert torch.equal(parts.flat.grads, once) and (first is None or torch.equal(first, once))


@pytest.mark.parametrize("name", CONFIGS)
def test_approx_kl_is_reported_by_every_algorithm(name):
    parts = Parts(CONFIGS[name])
    still = parts.update(learning_rate=0.0).statistics
    assert still["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)
    moved = parts.update(learning_rate=0.02).statistics
    assert moved["train/approx_kl"] > 1e-6


@pytest.mark.parametrize("name", ["a2c", "reinforce"])
def test_approx_kl_of_single_step_algorithms_is_that_of_the_step(name):
    parts = Parts(CONFIGS[name])
    result = parts.update(learning_rate=0.05)
    with torch.no_grad():
        log_prob = torch.log_softmax(parts.policy(parts.batch.obs)[0], -1).gather(1, parts.batch["action"][:, None])[
            :, 0
        ]
        log_ratio = log_prob - parts.batch["log_prob"]
    expected = float((log_ratio.exp() - 1 - log_ratio).mean())
    assert result.statistics["train/approx_kl"] == pytest.approx(expected, rel=1e-4)


def test_statistics_are_means_over_all_minibatches():
    parts = Parts(PPOConfig(id="ppo", batch_size=8, n_epochs=3))
    result = parts.update(learning_rate=0.0)
    assert result.updates == 12
    whole = Parts(PPOConfig(id="ppo", batch_size=N, n_epochs=1)).update(learning_rate=0.0)
    for name in ("train/value_loss", "train/entropy"):
        assert result.statistics[name] == pytest.approx(whole.statistics[name], rel=1e-5)
    c = parts.c
    statistics = result.statistics
    total = statistics["train/policy_loss"] + c["vf_coef"] * statistics["train/value_loss"]
    assert statistics["train/loss"] == pytest.approx(total - c["ent_coef"] * statistics["train/entropy"])


@pytest.mark.parametrize(("epochs", "expected"), [(1.0, 1), (2.4, 2), (2.6, 3), (0.2, 1)])
def test_scheduled_epochs_are_rounded_to_whole_ones(epochs, expected):
    parts = Parts(PPOConfig(id="ppo", batch_size=8))
    assert parts.update(n_epochs=epochs).updates == expected * 4


def test_the_same_generator_gives_the_same_weights():
    config = PPOConfig(id="ppo", batch_size=8, n_epochs=3, optimizer=OptimizerConfig())
    first, again = Parts(config), Parts(config)
    first.update()
    again.update()
    assert torch.equal(first.flat.values, again.flat.values)


@pytest.mark.parametrize(
    "network", [{}, {"shared_trunk": True}, {"layer_norm": True}, {"batch_norm": True}, {"dropout": 0.2}]
)
def test_updates_reduce_the_loss(network):
    """A few steps on one batch fit the critic to its targets and raise the probability of good actions."""
    parts = Parts(PPOConfig(id="ppo", batch_size=N, n_epochs=1), PolicyConfig(hidden=[16], **network))
    first = parts.update(learning_rate=0.01).statistics
    for _ in range(30):
        last = parts.update(learning_rate=0.01).statistics
    assert last["train/value_loss"] < 0.7 * first["train/value_loss"]
    assert last["train/policy_loss"] < first["train/policy_loss"] - 0.05
