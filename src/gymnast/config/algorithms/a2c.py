"""A2C's hyperparameters."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from gymnast.config.algorithms.base import (
    Normalize,
    NotNegative,
    OnPolicyConfig,
    OptimizerConfig,
    Rate,
    RNDConfig,
    Share,
)


class A2CConfig(OnPolicyConfig):
    """Advantage actor–critic (Mnih et al. 2016, synchronous). Defaults are Stable-Baselines3's."""

    id: Literal["a2c"]
    n_steps: PositiveInt | Literal["auto"] = 5
    """Steps per env and iteration."""
    learning_rate: Rate = 7e-4
    gae_lambda: Share = 1.0
    """1 gives n-step returns, below 1 generalised advantages."""
    ent_coef: NotNegative = 0.0
    vf_coef: NotNegative = 0.5
    normalize_advantage: Normalize = "off"
    value_loss: Literal["mse", "huber"] = "mse"
    huber_delta: float = Field(1.0, gt=0)
    rnd: RNDConfig | None = None
    """An intrinsic reward for what is new: `{weight: 0.5}`; null is off."""
    optimizer: OptimizerConfig = Field(default_factory=lambda: OptimizerConfig(id="rmsprop"))
