"""What every policy is, and the names by which it speaks to the rest.

A policy is stateless: whatever changes between two calls is an argument. What it says comes as tensors by name, so that
rollouts, updates, traces and checkpoints carry heads and memories that they know nothing about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gymnast.errors import ConfigError
from gymnast.policies.distributions import Distribution
from gymnast.policies.encoders import Encoder, Observation
from gymnast.policies.value_scale import ValueScale

Outputs = dict[str, Tensor]
"""What a policy gives, by name: `action`, `log_prob`, `entropy`, `value` and whatever else it has."""
Gradients = Mapping[str, "Tensor | float"]
"""How outputs should move, by name; one that is missing does not matter."""


@dataclass(frozen=True)
class Field:
    """A tensor that the rollout keeps for every step of every env: [T, N, *shape]."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    after_last: bool = False
    """Whether there is one more row, for the state after the last step."""
    learned: bool = True
    """Whether it goes into the batches of the update."""
    side: Literal["device", "host"] = "device"
    """Where it lies when the rollout is on a GPU."""


@dataclass(frozen=True)
class Head:
    """An output that an algorithm asks of the policy besides actions and value, computed from the critic's features."""

    name: str
    size: int = 1
    bootstrapped: bool = False
    """Whether it predicts something of the future, as the value does: then the rollout keeps it for T + 1 steps."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample: a single number has no axis of its own."""
        if self.size == 1:
            return ()
        return (self.size,)

    def shaped(self, columns: Tensor) -> Tensor:
        """What a layer with `size` outputs gives, [B, size], as it goes into the outputs: [B] or [B, size]."""
        if self.size == 1:
            return columns.squeeze(-1)
        return columns


@dataclass(frozen=True)
class Memory:
    """How the samples of a batch follow one another, for policies that remember: n sequences of L steps, time first."""

    state: Tensor
    """What each sequence begins with, [n, …]."""
    starts: Tensor
    """Whether an episode begins at a step, [L, n]: nothing of before is remembered there."""
    present: Tensor | None = None
    """Which steps there are, [L, n], where sequences differ in length: the first so many of each. None for all."""


class Policy(nn.Module):
    """Base of all policies. A new one gives `forward` and, if it remembers, `state_shape`; the rest can stay as it is."""

    distribution: Distribution
    encoder: Encoder
    state_shape: tuple[int, ...] | None = None
    """Of what one env's episode is remembered by; None for a policy that sees the present only."""
    sequence_length: int | None = None
    """Steps through which a policy with memory is differentiated; None for whole rollouts."""
    burn_in: int = 0
    """Steps before a sequence from which its first state is computed anew, with the weights as they are by then."""
    uneven = False
    """Whether it takes sequences of different lengths, as whole episodes have."""
    heads: tuple[Head, ...] = (Head("value", bootstrapped=True),)
    """What it predicts besides actions."""
    values_with_actions = True
    """Whether `act` gives the bootstrapped heads too; if not, they are computed for all steps at once."""
    by_hand = False
    """Whether the update needs no autograd at all."""
    absorbs = False
    """Whether layers have statistics of what they see (batch norm), which `absorb` moves."""
    draws = False
    """Whether layers draw noise while it learns (dropout)."""

    def forward(
        self, obs: Observation, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Tensor, Outputs, Tensor | None]:
        """Distribution parameters [B, P], the heads [B] or [B, size], and the state after the last step [n, …].

        Ordinary differentiable PyTorch. Rows of sequences lie time first: B = L · n.
        """
        raise NotImplementedError

    # ---- statistics of layers ----------------------------------------------------------------------------------------

    @property
    def needs_statistics(self) -> bool:
        """Whether it has to see observations of random actions before it acts, as the normaliser does."""
        return False

    def absorb(self, obs: Observation) -> None:
        """Move the statistics towards those of these observations: once per iteration, after the update."""

    def scale_values(self, *, preserving: bool) -> ValueScale | None:
        """Let the value head compute in units of its targets' std, and return that unit; None without a value head."""
        raise ConfigError("algo.normalize_value is for the shipped policies: this one has a value head of its own.")

    # ---- what it is ------------------------------------------------------------------------------------------------

    @property
    def has_critic(self) -> bool:
        """Whether it predicts returns."""
        return any(head.name == "value" for head in self.heads)

    @property
    def bootstrapped(self) -> list[str]:
        """Names of the heads that predict something of the future."""
        return [head.name for head in self.heads if head.bootstrapped]

    def fields(self) -> list[Field]:
        """What the rollout keeps of this policy's steps."""
        found = [
            Field("action", self.distribution.action_shape, self.distribution.action_dtype),
            Field("params", (self.distribution.n_params,), learned=False),
            Field("log_prob"),
        ]
        for head in self.heads:
            if head.bootstrapped:
                found.append(Field(head.name, head.shape, after_last=True))
        if self.state_shape is not None:
            found.append(Field("state", self.state_shape, after_last=True))
        return found

    def initial_state(self, n: int) -> Tensor | None:
        """What n episodes begin with; None for a policy without memory."""
        if self.state_shape is None:
            return None
        return torch.zeros((n, *self.state_shape), device=next(self.parameters()).device)

    # ---- acting ----------------------------------------------------------------------------------------------------

    def act(
        self, obs: Observation, noise: Tensor | None, mask: Tensor | None = None, state: Tensor | None = None
    ) -> Outputs:
        """One step: `action` and `params`, the bootstrapped heads, and the `state` after it. Greedy without noise."""
        params, heads, after = self(obs, mask, self._one_step(state))
        outputs = {"action": self.distribution.sample(params, noise), "params": params}
        for name in self.bootstrapped:
            outputs[name] = heads[name]
        if after is not None:
            outputs["state"] = after
        return outputs

    def afterwards(self, stored: Outputs) -> Outputs:
        """What is cheaper for all steps at once than step by step, from the fields of all steps [B, …]."""
        log_prob, _, _ = self.distribution.evaluate(stored["params"], stored["action"])
        return {"log_prob": log_prob}

    def bootstrap(self, obs: Observation, state: Tensor | None = None) -> Outputs:
        """The bootstrapped heads of observations that nothing is done in."""
        _, heads, _ = self(obs, None, self._one_step(state))
        return {name: heads[name] for name in self.bootstrapped}

    def values(self, obs: Observation, state: Tensor | None = None) -> Tensor:
        """Expected returns [B]; zeros without a critic."""
        if not self.has_critic:
            return torch.zeros(_length(obs), device=next(self.parameters()).device)
        return self.bootstrap(obs, state)["value"]

    def _one_step(self, state: Tensor | None) -> Memory | None:
        if state is None:
            return None
        return Memory(state, torch.zeros((1, state.shape[0]), dtype=torch.bool, device=state.device))

    def remembered(self, obs: Observation, memory: Memory) -> Tensor:
        """What n sequences are remembered by after their last step [n, …], without gradients."""
        with torch.no_grad():
            after: Tensor | None = self(obs, None, memory)[2]
        assert after is not None
        return after

    # ---- learning --------------------------------------------------------------------------------------------------

    def evaluate(
        self, obs: Observation, action: Tensor, mask: Tensor | None = None, memory: Memory | None = None
    ) -> tuple[Outputs, Any]:
        """`log_prob`, `entropy` and the heads of samples [B], and what `backprop` needs to go from them to the weights."""
        with torch.enable_grad():
            params, heads, _ = self(obs, mask, memory)
        log_prob, entropy, saved = self.distribution.evaluate(params.detach(), action)
        outputs = {"log_prob": log_prob, "entropy": entropy}
        for name, tensor in heads.items():
            outputs[name] = tensor.detach()
        return outputs, (params, heads, saved)

    def backprop(self, tape: Any, gradients: Gradients) -> None:
        """Add the gradients of all parameters to their `.grad`, given those of the outputs of `evaluate`."""
        params, heads, saved = tape
        roots, given = [params], [self.d_params(saved, params, gradients)]
        for name, tensor in heads.items():
            gradient = gradients.get(name)
            if isinstance(gradient, Tensor):
                roots.append(tensor)
                given.append(gradient)
        torch.autograd.backward(roots, given)

    def d_params(self, saved: Any, params: Tensor, gradients: Gradients) -> Tensor:
        """Gradient of the distribution's parameters."""
        d_log_prob = gradients.get("log_prob")
        if not isinstance(d_log_prob, Tensor):
            d_log_prob = params.new_zeros(params.shape[0])
        return self.distribution.backward(saved, d_log_prob, gradients.get("entropy", 0.0))

    def log_prob(
        self, obs: Observation, action: Tensor, mask: Tensor | None = None, memory: Memory | None = None
    ) -> Tensor:
        """Log-probabilities [B] of actions, without gradients."""
        with torch.no_grad():
            params, _, _ = self(obs, mask, memory)
            return self.distribution.evaluate(params, action)[0]


def _length(obs: Observation) -> int:
    if isinstance(obs, dict):
        tensor = next(iter(obs.values()))
    else:
        tensor = obs
    return tensor.shape[0]
