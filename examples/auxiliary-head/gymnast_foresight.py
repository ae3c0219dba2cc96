"""PPO whose network also foresees the end of the episode (after Kartal et al. 2019, "Terminal Prediction").

A further head predicts how soon the episode will terminate: the discounted sum of a 1 at its end. The layers that it shares
with the policy learn from it, also while rewards are rare.
"""

from __future__ import annotations

from typing import Literal

import torch

from gymnast.algorithms import base
from gymnast.algorithms.ppo import PPO
from gymnast.config.algorithms import PPOConfig
from gymnast.config.algorithms.base import NotNegative, Share
from gymnast.rollout.returns import gae


class Config(PPOConfig):
    """PPO's settings and two more."""

    id: Literal["foresight_example"]
    foresight_gamma: Share = 0.9
    """How far the head looks ahead: about 1 ÷ (1 − gamma) steps."""
    foresight_coef: NotNegative = 0.5


class Algorithm(PPO):
    """PPO, one head, one field."""

    # `bootstrapped`: the rollout keeps what the head says of every state, because a prediction of the future builds on it.
    heads = (base.Head("foresight", bootstrapped=True),)

    def fields(self, policy: base.Policy) -> list[base.Field]:
        """What the head should have said; filled below, and then in every minibatch under its name."""
        return [base.Field("foresight_target")]

    def targets(self, rollout: base.Rollout, c: base.Coefficients, policy: base.Policy) -> base.Batch:
        """A 1 where an episode terminates, discounted; cut-off episodes go on with what the head expects of them."""
        t = rollout.length
        terminated, truncated = rollout.terminated[:t], rollout.truncated[:t]
        said, next_said = rollout.host("foresight"), rollout.next["foresight"][:t]
        ends = terminated.astype("float32")
        _, target = gae(ends, said, next_said, terminated, truncated, c["foresight_gamma"], 0.95)
        rollout["foresight_target"][:t] = torch.from_numpy(target)
        return super().targets(rollout, c, policy)

    def loss(self, outputs: base.Outputs, batch: base.Batch, c: base.Coefficients) -> base.Loss:
        """PPO's, and foresight_coef·(foresight − target)²."""
        loss = super().loss(outputs, batch, c)
        error = outputs["foresight"] - batch["foresight_target"]
        loss.gradients["foresight"] = error * (2.0 * c["foresight_coef"] / len(batch))
        loss.statistics["train/foresight_loss"] = error.square()
        return loss
