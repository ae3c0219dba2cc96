"""PPO with a clipped objective.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms"; details after Huang et al. 2022, "The 37 Implementation
Details of PPO" (the table is in docs/algorithms/ppo.md).
"""

from __future__ import annotations

from gymnast.algorithms.base import Algorithm, Batch, Coefficients, Loss, Outputs
from gymnast.algorithms.losses import clipped_surrogate, clipped_value_error, normalized, value_error
from gymnast.config.algorithms import PPOConfig


class PPO(Algorithm[PPOConfig]):
    """Several epochs over each rollout, kept close to the policy that collected it."""

    def batch_size(self, samples: int) -> int:
        """A number, or a fraction of the rollout."""
        size = self.config.batch_size
        if isinstance(size, int):
            return size
        return max(1, round(size * samples))

    def weighted(self, batch: Batch) -> Batch:
        """Advantages normalised over the rollout, if asked; per minibatch is the loss's."""
        if self.config.normalize_advantage == "rollout":
            batch["advantage"] = normalized(batch["advantage"])
        return batch

    def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """−min(rA, clip(r)A) + vf_coef·(V − R)² − ent_coef·H, averaged over the minibatch."""
        config, n = self.config, len(batch)
        if config.normalize_advantage == "batch":
            advantage = normalized(batch["advantage"])
        else:
            advantage = batch["advantage"]
        log_ratio = outputs["log_prob"] - batch["log_prob"]
        policy_loss, d_log_prob, ratio = clipped_surrogate(log_ratio, advantage, c["clip_range"])
        value, target = self.in_unit(outputs["value"]), self.in_unit(batch["target"])
        if config.clip_range_vf is None:
            value_loss, d_value = value_error(value, target, config.value_loss, config.huber_delta)
        else:
            value_loss, d_value = clipped_value_error(
                value, self.in_unit(batch["value"]), target, c["clip_range_vf"], config.value_loss, config.huber_delta
            )
        change = ratio.sub_(1.0)
        loss = Loss(
            gradients={
                "log_prob": d_log_prob.mul_(1.0 / n),
                "entropy": -c["ent_coef"] / n,
                "value": self.by_value(d_value).mul_(c["vf_coef"] / n),
            },
            statistics={
                "train/policy_loss": policy_loss,
                "train/value_loss": value_loss,
                "train/entropy": outputs["entropy"],
                "train/approx_kl": change - log_ratio,  # k3 of Schulman's "Approximating KL divergence"
                "train/old_approx_kl": log_ratio.neg(),
                "train/clip_fraction": change.abs().gt(c["clip_range"]).float(),
            },
        )
        return self.explored(loss, outputs, batch, c)
