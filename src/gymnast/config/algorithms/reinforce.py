"""REINFORCE's hyperparameters."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from gymnast.config.algorithms.base import Normalize, NotNegative, OnPolicyConfig, Rate


class ReinforceConfig(OnPolicyConfig):
    """Monte-Carlo policy gradient (Williams 1992) on whole episodes."""

    id: Literal["reinforce"]
    episodes_per_env: PositiveInt = 1
    """Whole episodes each env slot plays per iteration: equal for every slot, so short episodes are not favoured."""
    max_steps: PositiveInt | None = None
    """Length of the longest episode; the env's time limit by default."""
    learning_rate: Rate = 1e-3
    baseline: Literal["none", "mean", "learned"] = "mean"
    """What is subtracted from the return: nothing, the batch mean, or a value network."""
    normalize_advantage: Normalize = "batch"
    """Off, per rollout or per batch; one batch is one rollout here, so the last two are equal."""
    ent_coef: NotNegative = 0.0
    vf_coef: NotNegative = 0.5
    """Weight of the learned baseline's loss."""
