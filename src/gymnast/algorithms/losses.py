"""Losses per sample with their derivative with respect to what the policy gave: pure functions on [B].

The derivative is written out because it is short and exact, and because a tape of thirty scalar operations costs more than
the network it serves. The tests hold each against autograd.
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: float) -> tuple[Tensor, Tensor, Tensor]:
    """PPO's pessimistic objective, to be minimised: −min(r·A, clip(r)·A), its derivative by log π, and r."""
    ratio = log_ratio.exp()
    unclipped = ratio * advantage
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip).mul_(advantage)
    # d(r·A)/d log π = r·A; where the clipped branch is smaller the objective is flat. A NaN stays one, to be found.
    derivative = torch.where(unclipped > clipped, 0.0, unclipped).neg_()
    return torch.minimum(unclipped, clipped).neg_(), derivative, ratio


def policy_gradient(log_prob: Tensor, advantage: Tensor) -> tuple[Tensor, Tensor]:
    """−A·log π and its derivative −A."""
    return (log_prob * advantage).neg_(), advantage.neg()


def squared_error(value: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(V − R)² and its derivative."""
    difference = value - target
    return difference * difference, difference.mul_(2.0)


def huber_error(value: Tensor, target: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """Twice the Huber loss, so that it equals (V − R)² near zero, and its derivative."""
    difference = value - target
    bounded = difference.clamp(-delta, delta)
    return bounded * (2.0 * difference - bounded), bounded.mul_(2.0)


def value_error(value: Tensor, target: Tensor, kind: str, delta: float) -> tuple[Tensor, Tensor]:
    """The value loss by name."""
    if kind == "mse":
        return squared_error(value, target)
    return huber_error(value, target, delta)


def clipped_value_error(
    value: Tensor, old_value: Tensor, target: Tensor, clip: float, kind: str, delta: float
) -> tuple[Tensor, Tensor]:
    """max(error(V), error(V clipped around the old V)) and its derivative."""
    moved = (value - old_value).clamp_(-clip, clip)
    clipped = old_value + moved
    loss, derivative = value_error(value, target, kind, delta)
    loss_clipped, derivative_clipped = value_error(clipped, target, kind, delta)
    inside = moved.abs() < clip
    pick_clipped = loss_clipped > loss
    derivative = torch.where(pick_clipped, derivative_clipped * inside, derivative)
    return torch.maximum(loss, loss_clipped), derivative


def normalized(advantage: Tensor) -> Tensor:
    """Zero mean and unit (sample) standard deviation; a single sample becomes zero, not NaN."""
    if advantage.shape[0] < 2:
        return torch.zeros_like(advantage)
    variance, mean = torch.var_mean(advantage)
    return (advantage - mean).div_(variance.sqrt_().add_(1e-8))
