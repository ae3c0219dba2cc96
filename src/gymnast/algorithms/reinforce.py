"""REINFORCE: Monte-Carlo policy gradient on whole episodes.

Williams 1992, "Simple Statistical Gradient-Following Algorithms". Every env slot plays the same number of whole episodes per
iteration, so long episodes are not under-represented. An episode cut off by the time limit counts with the return it had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from gymnast.algorithms.base import Algorithm, Batch, Coefficients, Loss, Outputs, Policy, Rollout
from gymnast.algorithms.losses import normalized, policy_gradient, squared_error
from gymnast.config.algorithms import ReinforceConfig
from gymnast.rollout.returns import Floats, Steps, discounted_returns


class Reinforce(Algorithm[ReinforceConfig]):
    """Policy gradient with no baseline, the batch mean, or a learned one."""

    def __init__(self, config: ReinforceConfig, n_envs: int) -> None:
        super().__init__(config, n_envs)
        self.uses_critic = config.baseline == "learned"
        self.episodes_per_env = config.episodes_per_env
        self.mean_return: float | None = None
        """The last batch's mean return, where that is the baseline."""

    def targets(self, rollout: Rollout, c: Coefficients, policy: Policy) -> Batch:
        """Discounted returns to the end of each episode, minus the baseline."""
        batch = super().targets(rollout, c, policy)
        if self.config.baseline == "mean":
            mean = batch["advantage"].mean()
            batch["advantage"] = batch["advantage"] - mean
            self.mean_return = float(mean)
        return batch

    def estimate(self, steps: Steps, c: Coefficients) -> tuple[Floats, Floats]:
        """Returns minus a learned baseline, and returns; the batch's mean is known only to the batch."""
        returns = discounted_returns(steps.reward, steps.ended, c["gamma"])
        return (returns - steps.value if self.uses_critic else returns), returns

    def advantages(self, steps: Steps, c: Coefficients) -> Floats:
        """Advantages of episodes outside training, by the last batch's baseline."""
        advantage = super().advantages(steps, c)
        if self.mean_return is None:
            return advantage
        return advantage - np.float32(self.mean_return)

    def state(self) -> dict[str, Any]:
        """State for the checkpoint; the baseline is for those who look at episodes later."""
        return {**super().state(), "mean_return": self.mean_return}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the reward scale and the mean return."""
        super().load_state(state)
        self.mean_return = state.get("mean_return")  # checkpoints of 0.1 have none

    def weighted(self, batch: Batch) -> Batch:
        """Normalised advantages, if asked."""
        if self.config.normalize_advantage != "off":
            batch["advantage"] = normalized(batch["advantage"])
        return batch

    def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """−A·log π − ent_coef·H, averaged over all steps; plus vf_coef·(V − R)² for a learned baseline."""
        n = len(batch)
        policy_loss, d_log_prob = policy_gradient(outputs["log_prob"], batch["advantage"])
        gradients: dict[str, Tensor | float] = {"log_prob": d_log_prob.mul_(1.0 / n), "entropy": -c["ent_coef"] / n}
        statistics = {"train/policy_loss": policy_loss, "train/entropy": outputs["entropy"]}
        if self.uses_critic:
            value_loss, d_value = squared_error(self.in_unit(outputs["value"]), self.in_unit(batch["target"]))
            gradients["value"] = self.by_value(d_value).mul_(c["vf_coef"] / n)
            statistics["train/value_loss"] = value_loss
        return Loss(gradients, statistics)
