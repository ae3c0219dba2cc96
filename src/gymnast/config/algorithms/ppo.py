"""PPO's hyperparameters."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from gymnast.config.algorithms.base import Normalize, NotNegative, OnPolicyConfig, RNDConfig, Share
from gymnast.config.schedule import Scheduled, within


class PPOConfig(OnPolicyConfig):
    """Proximal policy optimisation (Schulman et al. 2017). Defaults are Stable-Baselines3's where both have the key."""

    id: Literal["ppo"]
    n_steps: PositiveInt | Literal["auto"] = 128
    """Steps per env and iteration; `auto` reads the mean distance between rewards from a short random rollout."""
    batch_size: PositiveInt | Annotated[float, Field(gt=0, le=1)] = 0.25
    """Minibatch size, or a fraction (≤ 1) of the rollout."""
    n_epochs: Annotated[Scheduled, within(1.0)] = 4.0
    """Passes over each rollout; a schedule is rounded to whole epochs."""
    gae_lambda: Share = 0.95
    clip_range: Annotated[Scheduled, within(0.0, open_low=True)] = 0.2
    clip_range_vf: Annotated[Scheduled, within(0.0, open_low=True)] | None = None
    """Clip of the value function around its old prediction; `null` is off."""
    ent_coef: NotNegative = 0.0
    vf_coef: NotNegative = 0.5
    normalize_advantage: Normalize = "batch"
    value_loss: Literal["mse", "huber"] = "mse"
    huber_delta: float = Field(1.0, gt=0)
    rnd: RNDConfig | None = None
    """An intrinsic reward for what is new: `{weight: 0.5}`; null is off."""
    target_kl: NotNegative | None = None
    """Stop the epochs of an iteration when the mean KL estimate of an epoch passes this; counted in train/kl_stops."""
