"""Simple policy optimisation (Xie et al. 2024): PPO with a penalty on the ratio where PPO clips it.

The whole algorithm is its config and one function in plain PyTorch. Rollouts, advantages, minibatches, schedules, clipping,
checkpoints and metrics are gymnast's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import PositiveInt
from torch import Tensor

from gymnast.algorithms import base
from gymnast.algorithms.losses import normalized
from gymnast.config.algorithms.base import NotNegative, OnPolicyConfig, Rate, Share


class Config(OnPolicyConfig):
    """What `algo:` of a config may hold; every number typed Rate, Share or NotNegative may be a schedule."""

    id: Literal["spo_example"]
    n_steps: PositiveInt = 128
    n_epochs: Rate = 4.0
    gae_lambda: Share = 0.95
    radius: Rate = 0.2
    """How far the ratio moves where the advantage is all that counts."""
    vf_coef: NotNegative = 0.5
    ent_coef: NotNegative = 0.0


class Algorithm(base.Algorithm[Config]):
    """Several epochs over each rollout, in four minibatches."""

    def batch_size(self, samples: int) -> int:
        """A quarter of the rollout."""
        return max(1, samples // 4)

    def objective(
        self, outputs: base.Outputs, batch: base.Batch, c: base.Coefficients
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """−(r·A − |A|·(r − 1)² ÷ 2·radius) + vf_coef·(V − R)² − ent_coef·H."""
        advantage = normalized(batch["advantage"])
        log_ratio = outputs["log_prob"] - batch["log_prob"]
        change = log_ratio.exp() - 1.0
        policy_loss = (advantage.abs() * change.square() / (2.0 * c["radius"]) - advantage * (change + 1.0)).mean()
        value_loss = (outputs["value"] - batch["target"]).square().mean()
        loss = policy_loss + c["vf_coef"] * value_loss - c["ent_coef"] * outputs["entropy"].mean()
        approx_kl = change - log_ratio
        return loss, {"train/policy_loss": policy_loss, "train/value_loss": value_loss, "train/approx_kl": approx_kl}
