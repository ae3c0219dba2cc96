"""How a policy acts in one env, step by step: the one way for traces, videos and play."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from gymnast.envs.spaces import stack
from gymnast.envs.vector import StepRow
from gymnast.evaluation.evaluate import tensors
from gymnast.policies.base import Policy
from gymnast.policies.distributions import Categorical


class Choice(NamedTuple):
    """What a policy does with one observation."""

    actions: np.ndarray
    """As the env takes them: [1, ...]."""
    value: float
    """Expected return in the learner's reward scale; 0 without a critic."""
    probabilities: np.ndarray | None
    """Of each action, if there is one discrete choice."""
    log_prob: float
    """Of the action, as the policy samples."""


class Actor:
    """A policy that plays one episode after the other; whatever it remembers within an episode is kept here."""

    def __init__(self, policy: Policy, *, deterministic: bool, temperature: float = 1.0) -> None:
        """`temperature` sharpens (below 1) or blurs what sampled actions are drawn from."""
        self.deterministic = deterministic
        self.temperature = temperature
        self.gives_probabilities = isinstance(policy.distribution, Categorical)
        self.has_values = policy.has_critic
        self._policy = policy
        self._generator = torch.Generator()
        self._state = policy.initial_state(1)

    def begin(self, seed: int) -> None:
        """Begin an episode: samples are drawn from this seed."""
        self._generator.manual_seed(seed)
        self._state = self._policy.initial_state(1)

    def act(self, row: StepRow) -> Choice:
        """Choose for the observation in a row of one env."""
        policy, obs = self._policy, tensors(row.obs)
        mask = None
        if row.mask is not None:
            mask = torch.from_numpy(row.mask)
        with torch.inference_mode():
            noise = None
            if not self.deterministic:
                # Every distribution adds its noise to its parameters, so more of it is a higher temperature.
                noise = policy.distribution.noise((1,), self._generator) * self.temperature
            value = float(policy.values(obs, self._state)[0])
            outputs = policy.act(obs, noise, mask, self._state)
            self._state = outputs.get("state")
            probabilities = None
            if self.gives_probabilities:
                probabilities = torch.softmax(outputs["params"][0], -1).numpy()
            log_prob = float(policy.distribution.evaluate(outputs["params"], outputs["action"])[0][0])
        return Choice(outputs["action"].numpy(), value, probabilities, log_prob)

    def value_of(self, obs: Any) -> float:
        """The value of one canonical observation, such as the last one of an episode."""
        with torch.inference_mode():
            row = tensors(stack([obs], self._policy.encoder.space))
            return float(self._policy.values(row, self._state)[0])
