"""Our optimizers on one flat tensor equal the ones people know, parameter by parameter."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gymnast.algorithms.optimizer import Adam, RMSprop, make_optimizer
from gymnast.config.algorithms import A2CConfig, OptimizerConfig, PPOConfig
from gymnast.policies.flat import FlatParameters

STEPS = 200


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def gradients(step: int, count: int) -> torch.Tensor:
    """Gradients of very different sizes, some of them zero."""
    generator = torch.Generator().manual_seed(step)
    values = torch.randn(count, generator=generator) * 10.0 ** torch.randint(-6, 3, (count,), generator=generator)
    return values * (torch.rand(count, generator=generator) > 0.1)


def rate(step: int) -> float:
    """A learning rate that changes, as schedules make it."""
    return 1e-2 * (1.0 - step / STEPS) + 1e-4


def run_ours(config: OptimizerConfig, steps: range = range(STEPS), made=None):
    module = network()
    flat = FlatParameters(module)
    optimizer = make_optimizer(flat, config)
    if made is not None:
        made(flat, optimizer)
    for step in steps:
        flat.grads.copy_(gradients(step, flat.grads.numel()))
        optimizer.step(rate(step))
    return flat, optimizer


def run_theirs(make) -> torch.Tensor:
    module = network()
    optimizer = make(module.parameters())
    sizes = [parameter.numel() for parameter in module.parameters()]
    for step in range(STEPS):
        for parameter, part in zip(module.parameters(), gradients(step, sum(sizes)).split(sizes)):
            parameter.grad = part.view(parameter.shape).clone()
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adam_equals_torch(fused, weight_decay):
    config = OptimizerConfig(eps=1e-5, betas=(0.85, 0.99), weight_decay=weight_decay)
    ours, _ = run_ours(config)
    theirs = run_theirs(
        lambda parameters: torch.optim.Adam(
            parameters, lr=0.1, betas=(0.85, 0.99), eps=1e-5, weight_decay=weight_decay, fused=fused
        )
    )
    assert (ours.values - FlatParameters(network()).values).abs().min() > 1e-3  # everything moved
    torch.testing.assert_close(ours.values, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_rmsprop_equals_stable_baselines3(weight_decay):
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

    config = OptimizerConfig(id="rmsprop", eps=1e-5, alpha=0.95, weight_decay=weight_decay)
    ours, _ = run_ours(config)
    theirs = run_theirs(
        lambda parameters: RMSpropTFLike(parameters, lr=0.1, alpha=0.95, eps=1e-5, weight_decay=weight_decay)
    )
    torch.testing.assert_close(ours.values, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_torchs_rmsprop_equals_torch(weight_decay):
    ours, _ = run_ours(OptimizerConfig(id="rmsprop_torch", eps=1e-5, alpha=0.95, weight_decay=weight_decay))
    theirs = run_theirs(
        lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, alpha=0.95, eps=1e-5, weight_decay=weight_decay)
    )
    torch.testing.assert_close(ours.values, theirs, rtol=1e-5, atol=1e-6)


def test_rmsprop_is_not_torchs():
    """TensorFlow's starts its squares at one and has eps inside the root; the comparison above can tell them apart."""
    ours, _ = run_ours(OptimizerConfig(id="rmsprop", eps=1e-5, alpha=0.95))
    torchs = run_theirs(lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, alpha=0.95, eps=1e-5))
    assert not torch.allclose(ours.values, torchs, atol=1e-3)


@pytest.mark.parametrize("kind", ["adam", "rmsprop", "rmsprop_torch"])
def test_state_round_trip_is_exact(kind):
    config = OptimizerConfig(id=kind)
    whole, _ = run_ours(config)
    half, optimizer = run_ours(config, range(100))
    values = half.values.clone()
    state = {name: tensor.clone() for name, tensor in optimizer.state().items()}

    def continued(flat, fresh):
        flat.values.copy_(values)
        fresh.load_state(state)

    resumed, _ = run_ours(config, range(100, STEPS), continued)
    assert torch.equal(resumed.values, whole.values)
    without, _ = run_ours(config, range(100, STEPS), lambda flat, _: flat.values.copy_(values))
    assert not torch.equal(without.values, whole.values)


@pytest.mark.parametrize("kind", ["adam", "rmsprop", "rmsprop_torch"])
def test_reset_forgets_all_moments(kind):
    config = OptimizerConfig(id=kind)
    _, optimizer = run_ours(config, range(50))
    fresh = make_optimizer(FlatParameters(network()), config)
    optimizer.reset()
    for name, tensor in optimizer.state().items():
        assert torch.equal(tensor, fresh.state()[name]), name


def test_first_adam_step_has_the_size_of_the_learning_rate():
    module = network()
    flat = FlatParameters(module)
    before = flat.values.clone()
    flat.grads.fill_(-3.0)
    make_optimizer(flat, OptimizerConfig()).step(0.01)
    torch.testing.assert_close(flat.values - before, torch.full_like(before, 0.01), rtol=1e-4, atol=1e-6)


def test_defaults_are_the_published_ones():
    assert PPOConfig(id="ppo").optimizer == OptimizerConfig(id="adam", eps=1e-5, betas=(0.9, 0.999))
    assert A2CConfig(id="a2c").optimizer == OptimizerConfig(id="rmsprop", eps=1e-5, alpha=0.99)
    assert isinstance(make_optimizer(FlatParameters(network()), PPOConfig(id="ppo").optimizer), Adam)
    assert isinstance(make_optimizer(FlatParameters(network()), A2CConfig(id="a2c").optimizer), RMSprop)
