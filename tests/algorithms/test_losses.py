"""Every loss and its written-out derivative against the formula and autograd, in float64."""

from __future__ import annotations

import math

import pytest
import torch

from gymnast.algorithms.losses import (
    clipped_surrogate,
    clipped_value_error,
    huber_error,
    normalized,
    policy_gradient,
    squared_error,
    value_error,
)

N = 200


def draws(count: int, scale: float = 1.0) -> tuple[torch.Tensor, ...]:
    return torch.randn(count, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64).mul_(scale).unbind(0)


def check(function, formula, x: torch.Tensor) -> None:
    """`function(x)` gives the loss and its derivative; `formula(x)` the loss, for autograd."""
    before = x.clone()
    loss, derivative = function(x)[:2]
    assert torch.equal(x, before)  # inputs are left alone
    leaf = x.clone().requires_grad_()
    expected = formula(leaf)
    (gradient,) = torch.autograd.grad(expected.sum(), leaf)
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(derivative, gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("clip", [0.05, 0.2, 10.0])
def test_clipped_surrogate(clip):
    log_ratio, advantage = draws(2, 0.4)

    def formula(x):
        ratio = x.exp()
        return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)

    check(lambda x: clipped_surrogate(x, advantage, clip), formula, log_ratio)
    torch.testing.assert_close(clipped_surrogate(log_ratio, advantage, clip)[2], log_ratio.exp())


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "derivative"),
    [
        (1.5, 1.0, -1.2, 0.0),  # too likely already and good: flat
        (1.5, -1.0, 1.5, 1.5),  # too likely and bad: the full slope down
        (0.5, 1.0, -0.5, -0.5),  # too unlikely and good: the full slope up
        (0.5, -1.0, 0.8, 0.0),  # too unlikely already and bad: flat
        (1.0, 2.0, -2.0, -2.0),
    ],
)
def test_clipped_surrogate_by_hand(ratio, advantage, loss, derivative):
    log_ratio = torch.tensor([math.log(ratio)], dtype=torch.float64)
    found = clipped_surrogate(log_ratio, torch.tensor([advantage], dtype=torch.float64), 0.2)
    assert [float(x) for x in found] == pytest.approx([loss, derivative, ratio])


def test_a_nan_advantage_does_not_vanish():
    advantage = torch.tensor([1.0, math.nan])
    _, derivative, _ = clipped_surrogate(torch.zeros(2), advantage, 0.2)
    assert derivative.isnan().tolist() == [False, True]


def test_policy_gradient():
    log_prob, advantage = draws(2)
    check(lambda x: policy_gradient(x, advantage), lambda x: -x * advantage, log_prob)


def test_squared_error():
    value, target = draws(2, 3.0)
    check(lambda x: squared_error(x, target), lambda x: (x - target) ** 2, value)


@pytest.mark.parametrize("delta", [0.5, 1.0, 3.0])
def test_huber_error(delta):
    value, target = draws(2, 3.0)
    loss = torch.nn.HuberLoss(reduction="none", delta=delta)
    check(lambda x: huber_error(x, target, delta), lambda x: 2 * loss(x, target), value)
    near = target + 0.1
    torch.testing.assert_close(huber_error(near, target, delta)[0], squared_error(near, target)[0])


def test_value_error_goes_by_name():
    value, target = draws(2, 3.0)
    for kind, expected in (("mse", squared_error(value, target)), ("huber", huber_error(value, target, 1.0))):
        for found, wanted in zip(value_error(value, target, kind, 1.0), expected):
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("kind", ["mse", "huber"])
def test_clipped_value_error(kind):
    value, old, target = draws(3, 2.0)
    error = torch.nn.MSELoss(reduction="none") if kind == "mse" else torch.nn.HuberLoss(reduction="none")
    factor = 1.0 if kind == "mse" else 2.0

    def formula(x):
        clipped = old + (x - old).clamp(-0.3, 0.3)
        return factor * torch.maximum(error(x, target), error(clipped, target))

    check(lambda x: clipped_value_error(x, old, target, 0.3, kind, 1.0), formula, value)


@pytest.mark.parametrize(
    ("value", "loss", "derivative"),
    [
        (
            1.5,
            0.64,
            0.0,
        ),  # past the clip towards the target 1: the clipped error (0.2 − 1)² is the larger one, and flat
        (-1.0, 4.0, -4.0),  # away from the target: the unclipped error (−1 − 1)² is the larger one
        (2.0, 1.0, 2.0),  # past the clip and past the target: (2 − 1)² is larger than (0.2 − 1)²
        (0.1, 0.81, -1.8),  # inside the clip: both are the same
    ],
)
def test_value_clipping_table(value, loss, derivative):
    """The old value is 0, the target 1, the clip 0.2."""
    tensors = (torch.tensor([x], dtype=torch.float64) for x in (value, 0.0, 1.0))
    found = clipped_value_error(*tensors, 0.2, "mse", 1.0)
    assert [float(x) for x in found] == pytest.approx([loss, derivative])


def test_normalized():
    (advantage,) = draws(1, 5.0)
    result = normalized(advantage + 3.0)
    assert float(result.mean()) == pytest.approx(0.0, abs=1e-12)
    assert float(result.std()) == pytest.approx(1.0, rel=1e-8)
    torch.testing.assert_close(result, (advantage - advantage.mean()) / (advantage.std() + 1e-8))


def test_normalising_one_sample_or_equal_samples_is_not_nan():
    assert normalized(torch.tensor([5.0])).tolist() == [0.0]
    assert normalized(torch.full((4,), 2.5)).tolist() == [0.0] * 4
