"""The unit in which a value head computes (van Hasselt et al. 2016, "Learning values across many orders of magnitude").

Returns may be of any size; a network learns best where its outputs are about as large as 1. So the head computes v, and the
value is mean + std · v, by running statistics of the value targets. Everybody outside sees values in the unit of the rewards.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEAST = 1e-4
"""The smallest std: targets that are all equal have none."""


class ValueScale(nn.Module):
    """Mean and std of value targets, saved with the policy, and the last layer that computes in them."""

    mean: Tensor
    variance: Tensor
    std: Tensor
    count: Tensor

    def __init__(self, last: nn.Linear, *, preserving: bool) -> None:
        """With `preserving` (PopArt) the last layer moves against the statistics, so that no value changes by them."""
        super().__init__()
        self._last = [last]  # in a list, because it belongs to another module
        self._preserving = preserving
        for name, start in (("mean", 0.0), ("variance", 1.0), ("std", 1.0), ("count", 0.0)):
            self.register_buffer(name, torch.tensor(start))

    def value(self, computed: Tensor) -> Tensor:
        """What the head computed, in the unit of the rewards."""
        return computed * self.std + self.mean

    def normalised(self, value: Tensor) -> Tensor:
        """A value or a target as the head computes it."""
        return (value - self.mean) / self.std

    @torch.no_grad()
    def follow(self, targets: Tensor, rate: float) -> None:
        """Take in the targets of a rollout. Each weighs as much as all before together did, and at least `rate`."""
        self.count += 1
        share = max(1.0 / float(self.count), rate)  # host sync on a GPU, once per rollout
        variance, mean = torch.var_mean(targets.float(), correction=0)
        delta = mean.to(self.mean.device) - self.mean
        moved = self.mean + share * delta
        spread = (1.0 - share) * (self.variance + share * delta * delta) + share * variance.to(self.mean.device)
        std = spread.sqrt().clamp_(min=LEAST)
        if self._preserving:
            weight, bias = self._last[0].weight, self._last[0].bias
            weight.mul_(self.std / std)
            bias.mul_(self.std).add_(self.mean - moved).div_(std)
        self.mean.copy_(moved)
        self.variance.copy_(spread)
        self.std.copy_(std)
