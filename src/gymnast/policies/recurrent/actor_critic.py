"""The actor–critic with a memory: encoder, recurrent layers, then the chains of actor and critic.

Hausknecht and Stone 2015 for memory instead of stacked frames; Kapturowski et al. 2019 (R2D2) for stored states and burn-in. The
order of the parts is that of sb3-contrib's RecurrentPPO, so that its models fit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gymnast.config.schema import PolicyConfig
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.base import Gradients, Memory, Outputs
from gymnast.policies.encoders import Observation
from gymnast.policies.recurrent.layers import RecurrentLayers


class RecurrentActorCritic(ActorCritic):
    """Policy and value function of what has been seen since the episode began.

    Actor and critic have a memory each, side by side in one tensor, unless they share a trunk, a memory, or there is no critic.
    """

    uneven = True
    memory: RecurrentLayers

    def __init__(self, config: PolicyConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.state_shape = (torch.Size(self.memory.state_shape).numel(),)
        self.sequence_length, self.burn_in = config.sequence_length, config.burn_in
        # Values of a step need the state of that step, so they come with the actions.
        self.values_with_actions = True
        self.by_hand = self.by_hand and self.memory.inputs.by_hand

    def _chains_read(self, config: PolicyConfig) -> tuple[int, bool]:
        separate = bool(self.heads) and not (config.shared_memory or config.shared_trunk)
        self.memory = RecurrentLayers(
            config.memory,
            self.encoder.size,
            config.memory_size,
            depth=config.memory_layers,
            width=1 + separate,
            indexed=self.encoder.indexed,
        )
        return config.memory_size, False

    def _initialise(self, init: str, generator: torch.Generator) -> None:
        super()._initialise(init, generator)
        self.memory.initialise(init, generator)

    def _memory_of(self, memory: Memory | None, n: int) -> Memory:
        """Without a memory, every sample is an episode's first."""
        if memory is not None:
            return memory
        state = self.initial_state(n)
        assert state is not None
        return Memory(state, torch.ones((1, n), dtype=torch.bool, device=state.device))

    # ---- ordinary PyTorch ------------------------------------------------------------------------------------------

    def forward(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Tensor | None]:
        """Distribution parameters [B, P], the heads, and the states after the last step, differentiable by autograd."""
        x = self.encoder(obs)
        features, after = self.memory(x, self._memory_of(memory, x.shape[0]))
        for_actor, for_heads = features[:, 0], features[:, -1]
        if self.trunk is not None:
            for_actor = for_heads = self.trunk(for_actor)
        heads = {head.name: self._in_unit(head, chain(for_heads)) for head, chain in self._predictors}
        return self._params(self.actor(for_actor), mask), heads, after

    # ---- acting ----------------------------------------------------------------------------------------------------

    def _step(self, obs: Observation, state: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Features of actor and critic, and the state after the step."""
        x = self.encoder(obs)
        if state is None:
            state = self.initial_state(x.shape[0])
        features, after = self.memory.step(x, state)  # type: ignore[arg-type]
        for_actor, for_heads = features[:, 0], features[:, -1]
        if self.trunk is not None:
            for_actor = for_heads = self.trunk.infer(for_actor)
        return for_actor, for_heads, after

    def act(
        self, obs: Observation, noise: Tensor | None, mask: Tensor | None = None, state: Tensor | None = None
    ) -> Outputs:
        """`action`, `params`, the bootstrapped heads, and the `state` after the step."""
        for_actor, for_heads, after = self._step(obs, state)
        params = self._params(self.actor.infer(for_actor), mask)
        outputs = {"action": self.distribution.sample(params, noise), "params": params}
        self._predict(for_heads, outputs)
        outputs["state"] = after
        return outputs

    def bootstrap(self, obs: Observation, state: Tensor | None = None) -> Outputs:
        """The bootstrapped heads of observations that nothing is done in."""
        outputs: Outputs = {}
        self._predict(self._step(obs, state)[1], outputs)
        return outputs

    def remembered(self, obs: Observation, memory: Memory) -> Tensor:
        """What n sequences are remembered by after their last step."""
        state = memory.state
        with torch.no_grad():
            x = self.encoder(obs)
            for step, start in zip(x.unflatten(0, memory.starts.shape), memory.starts, strict=True):
                state = self.memory.step(step, state.masked_fill(start.unsqueeze(-1), 0.0))[1]
        return state

    # ---- the fast path of the update -------------------------------------------------------------------------------

    def log_prob(
        self, obs: Observation, action: Tensor, mask: Tensor | None = None, memory: Memory | None = None
    ) -> Tensor:
        """Log-probabilities [B] of actions, without gradients."""
        with torch.no_grad():
            params, _, _ = self.run(obs, mask, memory)
            return self.distribution.evaluate(params, action)[0]

    def run(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Any]:
        """Like `forward`, with the tape that `push_back` needs."""
        x, encoder_tape = self.encoder.run(obs)
        features, memory_tape = self.memory.run(x, self._memory_of(memory, x.shape[0]))
        for_actor, for_heads, trunk_tape = features[:, 0], features[:, -1], None
        if self.trunk is not None:
            for_actor, trunk_tape = self.trunk.run(for_actor)
            for_heads = for_actor
        params, heads, tapes = self.run_chains(for_actor, for_heads, mask)
        return params, heads, (encoder_tape, memory_tape, trunk_tape, tapes)

    def push_back(self, tapes: Any, d_params: Tensor, gradients: Gradients) -> None:
        """From the gradients of the outputs of `run` to those of all parameters."""
        encoder_tape, memory_tape, trunk_tape, chain_tapes = tapes
        by_actor, by_heads = self.push_back_chains(chain_tapes, d_params, gradients, to_input=True)
        assert by_actor is not None
        if by_heads is None:
            by_heads = torch.zeros_like(by_actor)
        if self.memory.width == 2:
            d_features = torch.stack((by_actor, by_heads), 1)
        else:
            together = by_actor + by_heads
            if self.trunk is not None:
                together = self.trunk.backprop(trunk_tape, together, to_input=True)  # type: ignore[assignment]
            d_features = together.unsqueeze(1)
        d_input = self.memory.backprop(memory_tape, d_features, to_input=self.encoder.learns)
        if d_input is not None:
            self.encoder.backprop(encoder_tape, d_input)
