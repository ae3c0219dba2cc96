"""Advantage-weighted regression: make the actions that did better than expected more likely, by exp(A ÷ temperature).

After Peng et al. 2019, "Advantage-Weighted Regression", without its replay buffer. An algorithm is its config, its
targets and its loss. This one gives the derivatives of its loss in closed form, by the names of the policy's outputs.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveInt

from gymnast.algorithms import base
from gymnast.algorithms.losses import normalized, policy_gradient, value_error
from gymnast.config.algorithms.base import NotNegative, OnPolicyConfig, Rate, Share

LARGEST_WEIGHT = 20.0


class Config(OnPolicyConfig):
    """What `algo:` of a config may hold."""

    id: Literal["awr"]
    n_steps: PositiveInt = 64
    gae_lambda: Share = 0.95
    n_epochs: Rate = 4.0
    temperature: Rate = 1.0
    """How sharply good actions are preferred; a schedule works too."""
    vf_coef: NotNegative = 0.5


class Algorithm(base.Algorithm[Config]):
    """Several passes over each rollout; the weights keep the policy near what was played.

    Targets are those of the base class: generalised advantages and returns.
    """

    def batch_size(self, samples: int) -> int:
        """A quarter of the rollout."""
        return max(1, samples // 4)

    def loss(self, outputs: base.Outputs, batch: base.Batch, c: base.Coefficients) -> base.Loss:
        """−exp(A ÷ temperature)·log π + vf_coef·(V − R)², averaged."""
        weight = torch.exp(normalized(batch["advantage"]) / c["temperature"]).clamp_(max=LARGEST_WEIGHT)
        policy_loss, d_log_prob = policy_gradient(outputs["log_prob"], weight)
        value_loss, d_value = value_error(outputs["value"], batch["target"], "mse", 1.0)
        n = len(batch)
        return base.Loss(
            gradients={"log_prob": d_log_prob.mul_(1.0 / n), "value": d_value.mul_(c["vf_coef"] / n)},
            statistics={
                "train/policy_loss": policy_loss,
                "train/value_loss": value_loss,
                "train/entropy": outputs["entropy"],
            },
        )
