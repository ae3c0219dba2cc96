"""A policy that remembers: a linear layer, a gated recurrent unit (Cho et al. 2014), and one linear layer per output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import PolicyConfig
from gymnast.policies import base
from gymnast.policies.distributions import IMPOSSIBLE, distribution_for
from gymnast.policies.encoders import Encoder, Observation


class Config(PolicyConfig):
    """The shared settings of networks, and what this one adds."""

    id: Literal["gru_example"]
    bias: bool = True
    """Whether the unit has biases."""


class Policy(base.Policy):
    """Actions and values from what has been seen since the episode began."""

    def __init__(
        self,
        config: Config,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        critic: bool = True,
        heads: Sequence[base.Head] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.distribution = distribution_for(action_space, state_dependent_std=True)
        self.encoder = Encoder(observation_space, config)
        self.heads = (base.Head("value", bootstrapped=True), *heads) if critic else tuple(heads)
        self.state_shape, self.sequence_length = (config.memory_size,), config.sequence_length
        self.inputs = nn.Linear(self.encoder.size, config.memory_size)
        self.cell = nn.GRUCell(config.memory_size, config.memory_size, bias=config.bias)
        self.actor = nn.Linear(config.memory_size, self.distribution.n_outputs)
        self.predictors = nn.ModuleDict({head.name: nn.Linear(config.memory_size, head.size) for head in self.heads})
        for name, tensor in self.named_parameters():
            if tensor.dim() == 2:
                gain = self.distribution.gain if name.startswith("actor") else 1.0
                nn.init.orthogonal_(tensor, gain, generator=generator)
            else:
                nn.init.zeros_(tensor)

    def forward(
        self, obs: Observation, mask: Tensor | None = None, memory: base.Memory | None = None
    ) -> tuple[Tensor, base.Outputs, Tensor | None]:
        """Through L steps of n sequences; acting is the case of L = 1."""
        assert memory is not None  # `state_shape` says that this policy has one
        x = torch.tanh(self.inputs(self.encoder(obs)))
        state, seen = memory.state, []
        for x_t, start in zip(x.unflatten(0, memory.starts.shape), memory.starts):
            state = self.cell(x_t, state.masked_fill(start.unsqueeze(-1), 0.0))
            seen.append(state)
        features = torch.cat(seen)
        params = self.actor(features)
        if mask is not None:
            params = torch.where(mask, params, IMPOSSIBLE)
        heads = {head.name: head.shaped(self.predictors[head.name](features)) for head in self.heads}
        return params, heads, state
