"""Policies whose every output can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import PolicyConfig
from gymnast.policies.base import Head, Memory, Outputs, Policy
from gymnast.policies.distributions import IMPOSSIBLE, distribution_for
from gymnast.policies.encoders import Encoder, Observation


class Summing(Policy):
    """Remembers the sum of an episode's observations: that is its value, and the logits are multiples of it.

    Of what it remembers, `pace` is kept from step to step; at 1, all of it.
    """

    state_shape = (1,)

    def __init__(
        self,
        config: PolicyConfig,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        critic: bool = True,
        heads: Sequence[Head] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        assert critic and not heads
        self.encoder = Encoder(observation_space, config)
        self.distribution = distribution_for(action_space)
        self.sequence_length = getattr(config, "sequence_length", None)
        n, size = self.distribution.n_params, self.encoder.size
        self.pace = nn.Parameter(torch.ones(()))
        self.reader = nn.Parameter(torch.ones(size))
        self.actor = nn.Parameter(torch.linspace(-0.3, 0.4, n))
        self.critic = nn.Parameter(torch.ones(()))

    def forward(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Tensor | None]:
        """One step after the other; without a memory, every sample is an episode's first."""
        read: Any = self.encoder(obs) @ self.reader
        if memory is None:
            memory = Memory(read.new_zeros(len(read), 1), torch.zeros(1, len(read), dtype=torch.bool))
        total, totals = memory.state[:, 0], []
        for now, starts in zip(read.view(len(memory.starts), -1), memory.starts, strict=True):
            total = torch.where(starts, 0.0, self.pace * total) + now
            totals.append(total)
        sums = torch.cat(totals)
        params = sums[:, None] * self.actor
        if mask is not None:
            params = torch.where(mask, params, IMPOSSIBLE)
        return params, {"value": self.critic * sums}, total[:, None]


class Wrapped(Policy):
    """Another policy as a newcomer would write it: `forward` alone, all else of the base class."""

    def __init__(self, inner: Policy) -> None:
        super().__init__()
        self.inner = inner
        self.encoder, self.distribution, self.heads = inner.encoder, inner.distribution, inner.heads

    def forward(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Tensor | None]:
        """The other's."""
        return self.inner(obs, mask, memory)  # type: ignore[no-any-return]
