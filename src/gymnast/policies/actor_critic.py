"""The policy: separate or shared trunks over an encoder (a CNN for images), a distribution head and a value head.

Two ways through the network compute the same thing: `forward` is ordinary differentiable PyTorch; `evaluate`/`backprop` is
the fast path of the update (see `dense`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import PolicyConfig
from gymnast.policies.base import Gradients, Head, Memory, Outputs, Policy
from gymnast.policies.batch_norm import FrozenBatchNorm
from gymnast.policies.dense import DenseChain
from gymnast.policies.distributions import IMPOSSIBLE, distribution_for
from gymnast.policies.encoders import Encoder, Observation
from gymnast.policies.own import OwnEncoder
from gymnast.policies.value_scale import ValueScale

VALUE = Head("value", bootstrapped=True)
_SCALED = VALUE.name
"""The head that may compute in another unit."""


class ActorCritic(Policy):
    """Policy and, unless `critic=False`, value function; `heads` are further outputs that an algorithm asks for."""

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
        self.distribution = distribution_for(
            action_space, squash=config.squash_actions, state_dependent_std=config.state_dependent_std
        )
        generator = generator or torch.Generator().manual_seed(0)
        if config.encoder is None:
            self.encoder = Encoder(observation_space, config)
        else:
            self.encoder = OwnEncoder(observation_space, config, generator)
        self.heads = (VALUE, *heads) if critic else tuple(heads)
        self.shared = bool(self.heads) and (config.shared_trunk or self.encoder.learns)
        """Whether actor and critic share layers, so that values come cheaper with the actions."""
        self.values_with_actions = self.shared
        n_in, indexed = self._chains_read(config)
        n_out = self.distribution.n_outputs
        style: dict[str, Any] = {
            "layer_norm": config.layer_norm,
            "batch_norm": config.batch_norm,
            "dropout": config.dropout,
        }
        first: dict[str, Any] = {"indexed": indexed, **style}
        self.trunk: DenseChain | None = None
        if config.shared_trunk and self.heads:
            n_features = config.hidden[-1] if config.hidden else n_in
            self.trunk = DenseChain([n_in, *config.hidden], config.activation, activate_last=True, **first)
            self.actor = DenseChain([n_features, n_out], config.activation)
            chains = {head.name: DenseChain([n_features, head.size], config.activation) for head in self.heads}
        else:
            self.actor = DenseChain([n_in, *config.hidden, n_out], config.activation, **first)
            hidden = config.hidden if config.critic_hidden is None else config.critic_hidden
            sizes = {head.name: [n_in, *hidden, head.size] for head in self.heads}
            chains = {name: DenseChain(size, config.activation, **first) for name, size in sizes.items()}
        # The value's chain keeps its own name, under which checkpoints have always saved it.
        self.critic = chains.pop("value", None)
        self.further = nn.ModuleDict(chains)
        self._initialise(config.init, generator)
        with torch.no_grad():
            self.actor.layers[-1].bias[self.distribution.log_std_outputs] = config.log_std_init  # type: ignore[operator]
        free = self.distribution.n_params - n_out
        self.log_std: nn.Parameter | None = None
        if free:
            self.log_std = nn.Parameter(torch.full((free,), config.log_std_init))
        self.by_hand = not self.encoder.learns and all(chain.by_hand for chain in self.chains())
        self.draws = any(chain.dropout > 0.0 for chain in self.chains())
        self.batch_norms = [part for part in self.modules() if isinstance(part, FrozenBatchNorm)]
        self.absorbs = bool(self.batch_norms)
        self._predictors = self._by_name()
        self.value_scale: ValueScale | None = None
        self.eval()

    def _chains_read(self, config: PolicyConfig) -> tuple[int, bool]:
        """Inputs of trunk, actor and critic, and whether they are indices; called once, when encoder and heads are known."""
        return self.encoder.size, self.encoder.indexed

    def chains(self) -> list[DenseChain]:
        """All chains of linear layers."""
        found = [self.trunk, self.actor, self.critic, *self.further.values()]
        return [chain for chain in found if isinstance(chain, DenseChain)]

    def predictors(self) -> list[tuple[str, DenseChain]]:
        """Name and chain of each head."""
        return [(head.name, chain) for head, chain in self._predictors]

    def _by_name(self) -> list[tuple[Head, DenseChain]]:
        """Each head with the chain that computes it."""
        found: list[tuple[Head, DenseChain]] = []
        for head in self.heads:
            chain = self.critic if head.name == "value" else self.further[head.name]
            assert isinstance(chain, DenseChain)
            found.append((head, chain))
        return found

    def _initialise(self, init: str, generator: torch.Generator) -> None:
        hidden = 2.0**0.5
        for net in self.encoder.nets:
            net.initialise(init, generator)
        last_gains = [(self.trunk, hidden), (self.actor, self.distribution.gain), (self.critic, 1.0)]
        last_gains += [(chain, 1.0) for chain in self.further.values()]  # type: ignore[misc]
        for chain, gain in last_gains:
            if chain is None:
                continue
            if init == "orthogonal":
                chain.orthogonal_(hidden, gain, generator)
            else:
                chain.uniform_(generator)

    # ---- ordinary PyTorch ------------------------------------------------------------------------------------------

    def forward(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Tensor | None]:
        """Distribution parameters [B, P] and the heads, differentiable by autograd; there is nothing to remember."""
        x = self.encoder(obs)
        if self.trunk is None:
            features = x
        else:
            features = self.trunk(x)
        heads = {head.name: self._in_unit(head, chain(features)) for head, chain in self._predictors}
        return self._params(self.actor(features), mask), heads, None

    def _params(self, outputs: Tensor, mask: Tensor | None) -> Tensor:
        if self.log_std is not None:
            outputs = torch.cat((outputs, self.log_std.expand(outputs.shape[0], -1)), -1)
        if mask is None:
            return outputs
        return torch.where(mask, outputs, IMPOSSIBLE)

    @property
    def needs_statistics(self) -> bool:
        """Whether batch norm has seen nothing yet."""
        return any(float(norm.count) == 0 for norm in self.batch_norms)

    @torch.no_grad()
    def absorb(self, obs: Observation) -> None:
        """Move the statistics of batch norm towards those of these observations, layer after layer."""
        for norm in self.batch_norms:
            norm.absorbing = True
        self(obs)
        for norm in self.batch_norms:
            norm.absorbing = False

    # ---- acting ----------------------------------------------------------------------------------------------------

    def act(
        self, obs: Observation, noise: Tensor | None, mask: Tensor | None = None, state: Tensor | None = None
    ) -> Outputs:
        """`action`, `params`, and the values where the trunk is shared (else they are cheaper in one batch)."""
        x = self.encoder(obs)
        if self.trunk is not None:
            x = self.trunk.infer(x)
        params = self._params(self.actor.infer(x), mask)
        outputs = {"action": self.distribution.sample(params, noise), "params": params}
        if self.shared:
            self._predict(x, outputs)
        return outputs

    def bootstrap(self, obs: Observation, state: Tensor | None = None) -> Outputs:
        """The bootstrapped heads of observations that nothing is done in."""
        x = self.encoder(obs)
        if self.trunk is not None:
            x = self.trunk.infer(x)
        outputs: Outputs = {}
        self._predict(x, outputs)
        return outputs

    def _predict(self, features: Tensor, outputs: Outputs) -> None:
        """Add the bootstrapped heads."""
        for head, chain in self._predictors:
            if head.bootstrapped:
                outputs[head.name] = self._in_unit(head, chain.infer(features))

    def _in_unit(self, head: Head, columns: Tensor) -> Tensor:
        """What a chain computed as the output that others see."""
        shaped = head.shaped(columns)
        if self.value_scale is None or head.name != _SCALED:
            return shaped
        return self.value_scale.value(shaped)

    def scale_values(self, *, preserving: bool) -> ValueScale | None:
        """Let the value head compute in units of its targets' std."""
        if self.critic is None:
            return None
        last = self.critic.layers[-1]
        assert isinstance(last, nn.Linear)
        self.value_scale = ValueScale(last, preserving=preserving).to(last.weight.device)
        return self.value_scale

    # ---- the fast path of the update -------------------------------------------------------------------------------

    def evaluate(
        self, obs: Observation, action: Tensor, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Outputs, Any]:
        """`log_prob`, `entropy` and the heads of samples [B], and the tape that `backprop` needs."""
        params, heads, tapes = self.run(obs, mask, memory)
        log_prob, entropy, saved = self.distribution.evaluate(params, action)
        return {"log_prob": log_prob, "entropy": entropy, **heads}, (tapes, params, saved)

    def backprop(self, tape: Any, gradients: Gradients) -> None:
        """Add the gradients of all parameters, given those of the outputs of `evaluate`."""
        tapes, params, saved = tape
        self.push_back(tapes, self.d_params(saved, params, gradients), gradients)

    def log_prob(
        self, obs: Observation, action: Tensor, mask: Tensor | None = None, memory: Memory | None = None
    ) -> Tensor:
        """Log-probabilities [B] of actions, without gradients."""
        return self.distribution.evaluate(self.act(obs, None, mask)["params"], action)[0]

    def run(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Any]:
        """Like `forward`, with the tape that `push_back` needs."""
        x, encoder_tape = self.encoder.run(obs)
        trunk_tape = None
        if self.trunk is not None:
            x, trunk_tape = self.trunk.run(x)
        params, heads, tapes = self.run_chains(x, x, mask)
        return params, heads, (encoder_tape, trunk_tape, *tapes)

    def run_chains(self, for_actor: Tensor, for_heads: Tensor, mask: Tensor | None) -> tuple[Tensor, Outputs, Any]:
        """Distribution parameters and heads of features, and the tapes of their chains."""
        outputs, actor_tape = self.actor.run(for_actor)
        heads: Outputs = {}
        head_tapes = []
        for head, chain in self._predictors:
            # Dropout works on the critic's loss alone: inside the ratio it would not be the policy that collected.
            chain.training = True
            columns, kept = chain.run(for_heads)
            chain.training = False
            heads[head.name] = self._in_unit(head, columns)
            head_tapes.append(kept)
        return self._params(outputs, mask), heads, (actor_tape, head_tapes)

    def push_back(self, tapes: Any, d_params: Tensor, gradients: Gradients) -> None:
        """From the gradients of the outputs of `run` to those of all parameters."""
        encoder_tape, trunk_tape, *chain_tapes = tapes
        shared = self.trunk is not None or self.encoder.learns
        d_features, d_heads = self.push_back_chains(chain_tapes, d_params, gradients, to_input=shared)
        if d_features is not None and d_heads is not None:
            d_features = d_features + d_heads
        if self.trunk is not None and d_features is not None:
            d_features = self.trunk.backprop(trunk_tape, d_features, to_input=self.encoder.learns)
        if self.encoder.learns and d_features is not None:
            self.encoder.backprop(encoder_tape, d_features)

    def push_back_chains(
        self, tapes: Any, d_params: Tensor, gradients: Gradients, *, to_input: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """Add the gradients of all chains behind the features; those of the features by the actor and by the heads, if asked."""
        actor_tape, head_tapes = tapes
        if self.log_std is not None:
            d_params, d_log_std = d_params.split(self.distribution.n_outputs, -1)
            self.log_std.grad.add_(d_log_std.sum(0))  # type: ignore[union-attr]
        by_actor = self.actor.backprop(actor_tape, d_params, to_input=to_input)
        by_heads: Tensor | None = None
        for (head, chain), kept in zip(self._predictors, head_tapes, strict=True):
            gradient = gradients.get(head.name)
            if not isinstance(gradient, Tensor):
                continue
            if self.value_scale is not None and head.name == _SCALED:
                gradient = gradient * self.value_scale.std
            by_head = chain.backprop(kept, gradient.unsqueeze(-1) if head.size == 1 else gradient, to_input=to_input)
            if by_heads is None or by_head is None:
                by_heads = by_head
            else:
                by_heads = by_heads + by_head
        return by_actor, by_heads
