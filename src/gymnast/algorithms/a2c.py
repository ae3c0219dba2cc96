"""A2C: one gradient step on each short rollout.

Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", in its synchronous form. It equals PPO with one
epoch, one minibatch, no clipping and no normalisation, because the ratio of the first step is 1 (tested to 1e-6).
"""

from __future__ import annotations

from gymnast.algorithms.base import Algorithm, Batch, Coefficients, Loss, Outputs
from gymnast.algorithms.losses import normalized, policy_gradient, value_error
from gymnast.config.algorithms import A2CConfig


class A2C(Algorithm[A2CConfig]):
    """Advantage actor–critic, by n-step returns (λ = 1) or generalised advantages."""

    def weighted(self, batch: Batch) -> Batch:
        """Normalised advantages, if asked; one batch is one rollout, so both normalisations are the same."""
        if self.config.normalize_advantage != "off":
            batch["advantage"] = normalized(batch["advantage"])
        return batch

    def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """−A·log π + vf_coef·(V − R)² − ent_coef·H, averaged."""
        n = len(batch)
        policy_loss, d_log_prob = policy_gradient(outputs["log_prob"], batch["advantage"])
        value_loss, d_value = value_error(
            self.in_unit(outputs["value"]),
            self.in_unit(batch["target"]),
            self.config.value_loss,
            self.config.huber_delta,
        )
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
            },
        )
        return self.explored(loss, outputs, batch, c)
