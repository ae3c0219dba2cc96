"""REINFORCE: Monte-Carlo policy gradient on whole episodes.

Williams 1992, "Simple Statistical Gradient-Following Algorithms". Every env slot plays the same number of whole episodes per
iteration, so long episodes are not under-represented. An episode cut off by the time limit counts with the return it had.
"""

from __future__ import annotations

from gymnast.algorithms.base import Algorithm, Coefficients, Loss, Outputs
from gymnast.algorithms.losses import normalized, policy_gradient, squared_error
from gymnast.config.algorithms import ReinforceConfig
from gymnast.rollout.buffer import Batch, Rollout
from gymnast.rollout.returns import discounted_returns


class Reinforce(Algorithm[ReinforceConfig]):
    """Policy gradient with no baseline, the batch mean, or a learned one."""

    def __init__(self, config: ReinforceConfig, n_envs: int) -> None:
        super().__init__(config, n_envs)
        self.uses_critic = config.baseline == "learned"
        self.episodes_per_env = config.episodes_per_env

    def targets(self, rollout: Rollout, c: Coefficients) -> Batch:
        """Discounted returns to the end of each episode, minus the baseline."""
        t = rollout.length
        ended = rollout.terminated[:t] | rollout.truncated[:t]
        returns = discounted_returns(self.rewards(rollout, c), ended, c["gamma"])
        batch = rollout.batch(returns, returns)
        if self.config.baseline == "mean":
            batch.advantage = batch.advantage - batch.advantage.mean()
        elif self.config.baseline == "learned":
            batch.advantage = batch.advantage - batch.value
        if self.config.normalize_advantage != "off":
            batch.advantage = normalized(batch.advantage)
        return batch

    def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """−A·log π − ent_coef·H, averaged over all steps; plus vf_coef·(V − R)² for a learned baseline."""
        n = len(batch)
        policy_loss, d_log_prob = policy_gradient(outputs.log_prob, batch.advantage)
        statistics = {"train/policy_loss": policy_loss, "train/entropy": outputs.entropy}
        d_value = None
        if outputs.value is not None:
            value_loss, d_value = squared_error(outputs.value, batch.target)
            d_value = d_value.mul_(c["vf_coef"] / n)
            statistics["train/value_loss"] = value_loss
        return Loss(d_log_prob.mul_(1.0 / n), -c["ent_coef"] / n, d_value, statistics)
