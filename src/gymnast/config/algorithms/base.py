"""What every algorithm's config has."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from gymnast.config.model import Model
from gymnast.config.schedule import Scheduled, within

Normalize = Literal["off", "rollout", "batch"]
Rate = Annotated[Scheduled, within(0.0, open_low=True)]
NotNegative = Annotated[Scheduled, within(0.0)]
Share = Annotated[Scheduled, within(0.0, 1.0)]


class OptimizerConfig(Model):
    """The optimizer and its constants."""

    id: Literal["adam", "rmsprop", "rmsprop_torch"] = "adam"
    """`rmsprop` is TensorFlow's (running squares start at 1, eps inside the root), `rmsprop_torch` torch's and SB3's."""
    eps: float = Field(1e-5, gt=0)
    """Added to the denominator; PPO implementations use 1e-5 where torch has 1e-8."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's two decay rates."""
    alpha: float = Field(0.99, ge=0, lt=1)
    """RMSprop's decay rate."""
    weight_decay: float = Field(0.0, ge=0)


class RNDConfig(Model):
    """Exploration by random network distillation (Burda et al. 2018); see docs/algorithms/rnd.md."""

    weight: float = Field(0.5, ge=0)
    """Of the intrinsic advantage next to the extrinsic one; the paper's 1 to 2."""
    intrinsic_gamma: float = Field(0.99, ge=0, lt=1)
    """Discount of intrinsic rewards, which go on over the ends of episodes."""
    intrinsic_lambda: float = Field(0.95, ge=0, le=1)
    """λ of generalised advantage estimation for intrinsic rewards."""
    first_layer: PositiveInt = 128
    """Units of the first layer of target and predictor."""
    further_layers: list[PositiveInt] = Field(default_factory=lambda: [128])
    """Further layers of the predictor, which has more to learn than the target has to say."""
    features: PositiveInt = 64
    """Numbers that are predicted."""


class AlgorithmConfig(Model):
    """Settings shared by all algorithms."""

    id: str
    learning_rate: Rate = 3e-4
    gamma: Share = 0.99
    """Discount."""
    max_grad_norm: Annotated[Scheduled, within(0.0, open_low=True)] | None = 0.5
    """Global gradient norm above which gradients are scaled down; `null` switches clipping off."""
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)


class OnPolicyConfig(AlgorithmConfig):
    """Settings shared by all algorithms that learn from rollouts of their own."""

    normalize_reward: bool = False
    """Divide rewards by the running std of the discounted return (not a wrapper; raw returns are reported)."""
    reward_clip: float = Field(10.0, gt=0)
    """Bound of the scaled reward when normalize_reward is on."""
    normalize_value: Literal["off", "running", "popart"] = "off"
    """The critic computes in units of the mean and std of its targets. `popart` moves its last layer against them, so that no
    value changes when they do; `running` does not. See docs/algorithms/popart.md."""
    normalize_value_rate: float = Field(0.05, gt=0, le=1)
    """Weight of the newest rollout's targets in that mean and std, once that is more than its share of all rollouts."""


class OffPolicyConfig(AlgorithmConfig):
    """Settings shared by all algorithms that learn from a replay."""

    n_steps: PositiveInt = 16
    """Steps of every env between two rounds of updates."""
    updates: PositiveInt = 16
    """Minibatches per round."""
    batch_size: PositiveInt = 64
    replay_size: PositiveInt = 100_000
    """Transitions that are kept; the oldest make room."""
    learning_starts: PositiveInt = 1_000
    """Transitions before the first update."""
