"""Batch normalisation whose statistics are fixed between two iterations.

With statistics of the minibatch (Ioffe & Szegedy 2015) a policy would act in one way and learn in another: the first ratio of PPO
would not be 1. Here running mean and variance are used throughout, while collecting and while learning, and move once
per iteration, after the update, as those of the observations do.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

MOMENTUM = 0.01
"""How far the statistics move towards those of an iteration; further in the first ones, which are plain means. What moves changes
the policy without its learning anything: CartPole is solved with 0.01 and stays below 150 with 0.3."""
EPS = 1e-5


class FrozenBatchNorm(nn.Module):
    """(x − mean) / std · weight + bias; mean and variance are buffers, saved, loaded and exported with the policy."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.zeros(()))
        self.absorbing = False
        """Whether the next batch moves the statistics."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalised copy of `x` [B, size]."""
        if self.absorbing:
            self._absorb(x)
        scale = self.weight * (self.variance + EPS).rsqrt()
        return (x - self.mean) * scale + self.bias

    @torch.no_grad()
    def _absorb(self, x: Tensor) -> None:
        self.count += 1
        share = max(MOMENTUM, 1.0 / float(self.count))  # a host–device sync, once per iteration
        self.mean.lerp_(x.mean(0), share)
        self.variance.lerp_(x.var(0, unbiased=False), share)
