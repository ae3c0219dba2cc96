"""The policy: separate or shared trunks over an encoder (a CNN for images), a distribution head and a value head.

Stateless: everything that changes between calls is an argument. Two ways through the network compute the same thing:
`forward` is ordinary differentiable PyTorch; `run`/`backprop` is the fast path the update uses (see `dense`).
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import PolicyConfig
from gymnast.policies.dense import DenseChain
from gymnast.policies.distributions import IMPOSSIBLE, Distribution, distribution_for
from gymnast.policies.encoders import Encoder, Observation


class ActorCritic(nn.Module):
    """Policy and, unless `critic=False`, value function."""

    def __init__(
        self,
        config: PolicyConfig,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        critic: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.distribution: Distribution = distribution_for(
            action_space, squash=config.squash_actions, state_dependent_std=config.state_dependent_std
        )
        self.encoder = Encoder(observation_space, config)
        self.shared = critic and (config.shared_trunk or self.encoder.learns)
        """Whether actor and critic share layers, so that values come cheaper with the actions."""
        self.has_critic = critic
        n_in, n_out = self.encoder.size, self.distribution.n_outputs
        style: dict[str, Any] = {"layer_norm": config.layer_norm, "dropout": config.dropout}
        first: dict[str, Any] = {"indexed": self.encoder.indexed, **style}
        self.trunk: DenseChain | None = None
        self.critic: DenseChain | None
        if config.shared_trunk and critic:
            self.trunk = DenseChain([n_in, *config.hidden], config.activation, activate_last=True, **first)
            self.actor = DenseChain([config.hidden[-1] if config.hidden else n_in, n_out], config.activation)
            self.critic = DenseChain([config.hidden[-1] if config.hidden else n_in, 1], config.activation)
        else:
            self.actor = DenseChain([n_in, *config.hidden, n_out], config.activation, **first)
            critic_hidden = config.hidden if config.critic_hidden is None else config.critic_hidden
            self.critic = DenseChain([n_in, *critic_hidden, 1], config.activation, **first) if critic else None
        self._initialise(config.init, generator or torch.Generator().manual_seed(0))
        with torch.no_grad():
            self.actor.layers[-1].bias[self.distribution.log_std_outputs] = config.log_std_init  # type: ignore[operator]
        free = self.distribution.n_params - n_out
        self.log_std = nn.Parameter(torch.full((free,), config.log_std_init)) if free else None
        chains = [chain for chain in (self.trunk, self.actor, self.critic) if chain is not None]
        self.by_hand = not self.encoder.learns and all(chain.by_hand for chain in chains)
        self.eval()

    def _initialise(self, init: str, generator: torch.Generator) -> None:
        hidden = 2.0**0.5
        for net in self.encoder.nets:
            net.initialise(init, generator)
        for chain, last in ((self.trunk, hidden), (self.actor, self.distribution.gain), (self.critic, 1.0)):
            if chain is not None:
                if init == "orthogonal":
                    chain.orthogonal_(hidden, last, generator)
                else:
                    chain.uniform_(generator)

    # ---- ordinary PyTorch ------------------------------------------------------------------------------------------

    def forward(self, obs: Observation, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Distribution parameters [B, P] and values [B], differentiable by autograd."""
        x = self.encoder(obs)
        features = x if self.trunk is None else self.trunk(x)
        value = features.new_zeros(features.shape[0]) if self.critic is None else self.critic(features).squeeze(-1)
        return self._params(self.actor(features), mask), value

    def _params(self, outputs: Tensor, mask: Tensor | None) -> Tensor:
        if self.log_std is not None:
            outputs = torch.cat((outputs, self.log_std.expand(outputs.shape[0], -1)), -1)
        return outputs if mask is None else torch.where(mask, outputs, IMPOSSIBLE)

    # ---- acting ----------------------------------------------------------------------------------------------------

    def act(
        self, obs: Observation, noise: Tensor | None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Actions, distribution parameters, and values where the trunk is shared (else they are cheaper in one batch)."""
        x = self.encoder(obs)
        value = None
        if self.trunk is not None:
            x = self.trunk.infer(x)
        if self.shared:
            value = self.critic.infer(x).squeeze(-1)  # type: ignore[union-attr]
        params = self._params(self.actor.infer(x), mask)
        return self.distribution.sample(params, noise), params, value

    def values(self, obs: Observation) -> Tensor:
        """Values [B]; zeros without a critic."""
        x = self.encoder(obs)
        if self.critic is None:
            return torch.zeros(x.shape[0], device=x.device)
        return self.critic.infer(x if self.trunk is None else self.trunk.infer(x)).squeeze(-1)

    # ---- the fast path of the update -------------------------------------------------------------------------------

    def run(self, obs: Observation, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None, Any]:
        """Like `forward`, with the tape that `backprop` needs."""
        x, encoder_tape = self.encoder.run(obs)
        trunk_tape = None
        if self.trunk is not None:
            x, trunk_tape = self.trunk.run(x)
        outputs, actor_tape = self.actor.run(x)
        value, critic_tape = None, None
        if self.critic is not None:
            # Dropout works on the critic's loss alone: inside the ratio it would not be the policy that collected.
            self.critic.training = True
            column, critic_tape = self.critic.run(x)
            self.critic.training = False
            value = column.squeeze(-1)
        return self._params(outputs, mask), value, (encoder_tape, trunk_tape, actor_tape, critic_tape)

    def backprop(self, tape: Any, d_params: Tensor, d_value: Tensor | None) -> None:
        """Add the gradients of all parameters, given those of the two outputs of `run`."""
        encoder_tape, trunk_tape, actor_tape, critic_tape = tape
        if self.log_std is not None:
            d_params, d_log_std = d_params.split(self.distribution.n_outputs, -1)
            self.log_std.grad.add_(d_log_std.sum(0))  # type: ignore[union-attr]
        shared = self.trunk is not None or self.encoder.learns
        d_features = self.actor.backprop(actor_tape, d_params, to_input=shared)
        if self.critic is not None and d_value is not None:
            d_from_value = self.critic.backprop(critic_tape, d_value.unsqueeze(-1), to_input=shared)
            if d_features is not None and d_from_value is not None:
                d_features = d_features + d_from_value
        if self.trunk is not None and d_features is not None:
            d_features = self.trunk.backprop(trunk_tape, d_features, to_input=self.encoder.learns)
        if self.encoder.learns and d_features is not None:
            self.encoder.backprop(encoder_tape, d_features)
