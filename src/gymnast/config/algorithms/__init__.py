"""Algorithm configs by id; plug-ins register theirs in the entry-point group `gymnast.algorithms`."""

from __future__ import annotations

from gymnast.config.algorithms.a2c import A2CConfig
from gymnast.config.algorithms.base import OnPolicyConfig, OptimizerConfig
from gymnast.config.algorithms.ppo import PPOConfig
from gymnast.config.algorithms.reinforce import ReinforceConfig

CONFIGS: dict[str, type[OnPolicyConfig]] = {"ppo": PPOConfig, "a2c": A2CConfig, "reinforce": ReinforceConfig}

__all__ = ["CONFIGS", "A2CConfig", "OnPolicyConfig", "OptimizerConfig", "PPOConfig", "ReinforceConfig"]
