"""The hand-written backward pass equals autograd through torch.distributions, for every space, trunk and activation."""

from __future__ import annotations

import math

import pytest
import torch
from gymnasium import spaces
from torch.distributions import Bernoulli, Categorical, Independent, Normal, TransformedDistribution
from torch.distributions.transforms import AffineTransform, TanhTransform

from gymnast.config.schema import PolicyConfig
from gymnast.policies import distributions
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters

B = 11
OBSERVATIONS = {
    "box": (spaces.Box(-1, 1, (5,)), lambda: torch.randn(B, 5)),
    "image_like": (spaces.Box(-1, 1, (2, 3)), lambda: torch.randn(B, 2, 3)),
    "discrete": (spaces.Discrete(7), lambda: torch.randint(0, 7, (B,))),
    "multi_discrete": (
        spaces.MultiDiscrete([3, 4]),
        lambda: torch.stack([torch.randint(0, 3, (B,)), torch.randint(0, 4, (B,))], -1),
    ),
    "dict": (
        spaces.Dict(a=spaces.Box(-1, 1, (2, 2)), b=spaces.Discrete(3)),
        lambda: {"a": torch.randn(B, 2, 2), "b": torch.randint(0, 3, (B,))},
    ),
}
ACTIONS = {
    "discrete": spaces.Discrete(3),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "box": spaces.Box(-1, 1, (2,)),
    "switches": spaces.MultiBinary((2, 2)),
    "parts": spaces.Dict(
        {
            "point": spaces.Box(-3, 1, (2,)),
            "rest": spaces.Tuple((spaces.Discrete(3, start=2), spaces.MultiBinary(2), spaces.Box(0, 1, (1,)))),
        }
    ),
}
GAUSSIANS = {
    "plain": {},
    "squashed": {"squash_actions": True},
    "state_dependent": {"state_dependent_std": True},
    "both": {"squash_actions": True, "state_dependent_std": True},
}


def reference(distribution, params, action):
    """Log-probability and entropy by torch.distributions."""
    if isinstance(distribution, distributions.Composite):
        both = [
            reference(part, p, a)
            for part, p, a in zip(distribution.parts, distribution.split(params), distribution.actions(action))
        ]
        return sum(log_prob for log_prob, _ in both), sum(entropy for _, entropy in both)
    if isinstance(distribution, distributions.Bernoulli):
        bernoulli = Independent(Bernoulli(logits=params), 1)
        return bernoulli.log_prob(action.flatten(1).float()), bernoulli.entropy()
    if isinstance(distribution, distributions.SquashedGaussian):
        return squashed_reference(distribution, params, action)
    if hasattr(distribution, "_sizes"):
        parts = [Categorical(logits=z) for z in params.split(distribution._sizes, -1)]
        log_prob = sum(part.log_prob(a) for part, a in zip(parts, action.unbind(-1)))
        return log_prob, sum(part.entropy() for part in parts)
    if hasattr(distribution, "size"):
        mean, log_std = distribution.split(params)
        normal = Independent(Normal(mean, log_std.exp()), 1)
        return normal.log_prob(action), normal.entropy()
    categorical = Categorical(logits=params)
    return categorical.log_prob(action), categorical.entropy()


def squashed_reference(distribution, params, action):
    """torch's own tanh and affine transforms; the entropy by a fine grid over ±10 standard deviations."""
    mean, log_std = distribution.split(params)
    stretch = AffineTransform(distribution._centre, distribution._half)
    squashed = TransformedDistribution(Normal(mean, log_std.exp()), [TanhTransform(), stretch])
    log_prob = squashed.log_prob(action).sum(-1)
    z = torch.linspace(-10, 10, 4001, dtype=torch.float64)
    u = mean.double().unsqueeze(-1) + log_std.double().exp().unsqueeze(-1) * z
    log_slope = 2.0 * (math.log(2.0) - u.abs() - torch.log1p((-2.0 * u.abs()).exp()))
    weight = (-0.5 * z.square()).exp()
    extra = (log_slope * weight).sum(-1) / weight.sum() + distribution._half.log()
    return log_prob, (Normal(mean, log_std.exp()).entropy() + extra).sum(-1).float()


def check(config, observation, action_space, mask=None):
    torch.manual_seed(0)
    space, draw = OBSERVATIONS[observation]
    policy = ActorCritic(config, space, action_space)
    flat = FlatParameters(policy)
    # Away from the near-zero policy head; less far where a wide spread would cost the entropy's digits.
    flat.values.add_(torch.randn_like(flat.values) * (0.15 if config.squash_actions else 0.3))
    obs = draw()
    with torch.no_grad():
        noise = policy.distribution.noise((B,), torch.Generator().manual_seed(1))
        action = policy.act(obs, noise, mask)["action"]
    d_log_prob, d_entropy, d_value = torch.randn(3, B).unbind(0)

    params, heads, state = policy(obs, mask)
    value = heads["value"]
    assert state is None
    log_prob, entropy = reference(policy.distribution, params, action)
    (log_prob @ d_log_prob + entropy @ d_entropy + value @ d_value).backward()
    expected = flat.grads.clone()

    flat.grads.zero_()
    with torch.inference_mode(policy.by_hand), torch.no_grad():
        fast, tape = policy.evaluate(obs, action, mask)
        policy.backprop(tape, {"log_prob": d_log_prob, "entropy": d_entropy, "value": d_value})
    assert fast.keys() == {"log_prob", "entropy", "value"}
    torch.testing.assert_close(fast["log_prob"], log_prob.detach(), rtol=1e-5, atol=1e-5)
    # The entropy of a squashed Gaussian is an integral: by quadrature it is right to 4 digits.
    close = {"rtol": 1e-3, "atol": 1e-3} if config.squash_actions else {"rtol": 1e-4, "atol": 2e-5}
    torch.testing.assert_close(fast["entropy"], entropy.detach(), **close)
    torch.testing.assert_close(fast["value"], value.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(flat.grads, expected, **close)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_every_space(observation, action, shared):
    check(PolicyConfig(hidden=[8, 6], shared_trunk=shared), observation, ACTIONS[action])


@pytest.mark.parametrize("kind", GAUSSIANS)
@pytest.mark.parametrize("action", ["box", "parts"])
def test_every_gaussian(action, kind):
    for shared in (False, True):
        check(PolicyConfig(hidden=[8, 6], shared_trunk=shared, **GAUSSIANS[kind]), "box", ACTIONS[action])


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu", "gelu", "leaky_relu"])
def test_every_activation(activation, layer_norm):
    for shared in (False, True):
        config = PolicyConfig(hidden=[8, 6], shared_trunk=shared, activation=activation, layer_norm=layer_norm)
        check(config, "box", ACTIONS["discrete"])


def test_dropout_works_on_the_critic_alone():
    policy = ActorCritic(PolicyConfig(hidden=[64], dropout=0.5), *(OBSERVATIONS["box"][0], ACTIONS["box"]))
    FlatParameters(policy)
    obs = OBSERVATIONS["box"][1]()
    params, values = [], []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        with torch.no_grad():
            outputs, heads, _ = policy.run(obs)
        params.append(outputs)
        values.append(heads["value"])
    assert torch.equal(params[0], params[2]) and torch.equal(params[0], policy(obs)[0])
    assert torch.equal(values[0], values[1]) and not torch.equal(values[0], values[2])
    assert torch.equal(policy.values(obs), policy.values(obs))


def test_other_depths():
    check(PolicyConfig(hidden=[]), "box", ACTIONS["discrete"])
    check(PolicyConfig(hidden=[8], critic_hidden=[5, 4, 3]), "discrete", ACTIONS["box"])


def test_masked_actions():
    mask = torch.ones(B, 3, dtype=torch.bool)
    mask[::2, 1] = False
    check(PolicyConfig(hidden=[8]), "box", ACTIONS["discrete"], mask)
    check(PolicyConfig(hidden=[8], shared_trunk=True), "dict", ACTIONS["discrete"], mask)
