"""PopArt: values stay where they are when their unit moves, and gradients are those of the normalised loss."""

from __future__ import annotations

import pytest
import torch
from gymnasium import spaces

from gymnast.algorithms import make_algorithm
from gymnast.config.algorithms import A2CConfig, PPOConfig, ReinforceConfig
from gymnast.config.schema import PolicyConfig
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch

BOX, DISCRETE = spaces.Box(-1, 1, (3,)), spaces.Discrete(2)
CONFIGS = {
    "ppo": PPOConfig(id="ppo", normalize_value="popart"),
    "clipped": PPOConfig(id="ppo", normalize_value="popart", clip_range_vf=0.1),
    "a2c": A2CConfig(id="a2c", normalize_value="popart"),
    "reinforce": ReinforceConfig(id="reinforce", baseline="learned", normalize_value="popart"),
}
STYLES = {"plain": {}, "trunk": {"shared_trunk": True}, "recurrent": {"memory": "gru"}}
TARGETS = torch.tensor([1e4, -3e4, 5e3, 2e4])
C = {"clip_range": 0.2, "clip_range_vf": 0.1, "ent_coef": 0.0, "vf_coef": 0.5}


@pytest.fixture(autouse=True)
def _as_in_training():
    with torch.no_grad():
        yield


def parts(kind="ppo", style="plain", mode="popart"):
    config = CONFIGS[kind].model_copy(update={"normalize_value": mode})
    algorithm = make_algorithm(config, 1)
    policy = algorithm.make_policy(PolicyConfig(hidden=[8], **STYLES[style]), BOX, DISCRETE)
    return algorithm, policy, torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("style", STYLES)
def test_values_stay_when_the_statistics_move(style):
    algorithm, policy, obs = parts(style=style)
    algorithm.value_scale.follow(TARGETS, 0.05)
    for moved in (TARGETS * 3 + 7e4, TARGETS * 0.01, torch.full((4,), 5.0)):
        before, unit = policy.values(obs), float(algorithm.value_scale.std)
        algorithm.value_scale.follow(moved, 0.2)
        after = policy.values(obs)
        assert abs(float(algorithm.value_scale.std) / unit - 1) > 1e-2
        torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5 * unit)
        torch.testing.assert_close(policy(obs)[1]["value"], before, rtol=1e-5, atol=1e-5 * unit)


def test_values_that_are_only_normalised_move():
    """Or else the test above could not fail."""
    algorithm, policy, obs = parts(mode="running")
    before = policy.values(obs)
    algorithm.value_scale.follow(TARGETS, 0.05)
    assert (policy.values(obs) - before).abs().max() > 10


def test_the_unit_is_that_of_all_targets_at_first():
    algorithm, _, _ = parts()
    generator = torch.Generator().manual_seed(0)
    rollouts = [torch.randn(100, generator=generator) * 10**k + k for k in range(3)]
    for targets in rollouts:
        algorithm.value_scale.follow(targets, 0.05)
    everything = torch.cat(rollouts)
    torch.testing.assert_close(algorithm.value_scale.mean, everything.mean(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(algorithm.value_scale.std, everything.std(correction=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("style", STYLES)
def test_the_gradient_is_that_of_the_normalised_error(kind, style):
    """By autograd through the network in its own unit; the learning rate never meets the size of the rewards."""
    algorithm, policy, obs = parts(kind, style)
    algorithm.value_scale.follow(TARGETS, 0.05)
    flat = FlatParameters(policy)
    action = torch.tensor([0, 1, 1, 0])
    outputs, tape = policy.evaluate(obs, action)
    # Old values lie near the new ones, so that nothing is clipped.
    fields = {"action": action, "log_prob": outputs["log_prob"], "value": outputs["value"].clone()}
    batch = Batch({"obs": obs, **fields, "advantage": torch.zeros(4), "target": TARGETS})
    policy.backprop(tape, algorithm.loss(outputs, batch, C).gradients)
    scale = algorithm.value_scale
    with torch.enable_grad():
        own = (policy(obs)[1]["value"] - scale.mean) / scale.std
        loss = C["vf_coef"] * (own - (TARGETS - scale.mean) / scale.std).square().mean()
        expected = torch.autograd.grad(loss, list(policy.parameters()), allow_unused=True)
    for got, found in zip(flat.split(flat.grads), expected, strict=True):
        wanted = torch.zeros_like(got) if found is None else found
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-6)
    assert 1e-3 < float(flat.norm()) < 10
