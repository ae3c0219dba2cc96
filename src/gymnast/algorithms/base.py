"""The on-policy contract: an algorithm is its config, its targets and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from torch import Tensor

from gymnast.config.algorithms import OnPolicyConfig
from gymnast.rollout.buffer import Batch, Rollout
from gymnast.rollout.returns import RewardScaler, gae

Coefficients = dict[str, float]
"""Of one iteration by name. A captured update has them as 0-d tensors on the device instead."""
C = TypeVar("C", bound=OnPolicyConfig)


@dataclass(slots=True)
class Outputs:
    """What the policy says about a minibatch: log π(a|s), entropy and value, each [B]."""

    log_prob: Tensor
    entropy: Tensor
    value: Tensor | None


@dataclass(slots=True)
class Loss:
    """How the minibatch wants the outputs to move, and per-sample statistics [B] by catalogue name."""

    d_log_prob: Tensor
    d_entropy: float
    d_value: Tensor | None
    statistics: dict[str, Tensor]


class Algorithm(Generic[C]):
    """Base of all on-policy algorithms."""

    uses_critic = True
    n_epochs = 1
    episodes_per_env: int | None = None

    def __init__(self, config: C, n_envs: int) -> None:
        self.config = config
        self.reward_scaler = RewardScaler(n_envs, config.reward_clip) if config.normalize_reward else None

    def batch_size(self, samples: int) -> int:
        """Minibatch size for a rollout of `samples`."""
        return samples

    def targets(self, rollout: Rollout, c: Coefficients) -> Batch:
        """Advantages and value targets of a filled rollout."""
        raise NotImplementedError

    def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """Derivatives of the mean loss by the policy's outputs."""
        raise NotImplementedError

    def rewards(self, rollout: Rollout, c: Coefficients) -> np.ndarray:
        """Rewards [T, N] as the learner sees them."""
        reward = rollout.reward[: rollout.length]
        if self.reward_scaler is None:
            return reward
        if self.episodes_per_env is not None:
            self.reward_scaler.start_episodes()
        ended = rollout.terminated[: rollout.length] | rollout.truncated[: rollout.length]
        return self.reward_scaler(reward, ended, c["gamma"])

    def gae_targets(self, rollout: Rollout, c: Coefficients) -> Batch:
        """Generalised advantages and returns; shared by the actor–critic algorithms."""
        advantage, target = gae(
            self.rewards(rollout, c),
            rollout.values(),
            rollout.next_value[: rollout.length],
            rollout.terminated[: rollout.length],
            rollout.truncated[: rollout.length],
            c["gamma"],
            c["gae_lambda"],
        )
        return rollout.batch(advantage, target)

    def state(self) -> dict[str, Any]:
        """State for the checkpoint."""
        return {} if self.reward_scaler is None else {"reward_scaler": self.reward_scaler.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore bit-equal."""
        if self.reward_scaler is not None:
            self.reward_scaler.load_state(state["reward_scaler"])
