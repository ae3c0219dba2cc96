"""Algorithm configs by id; plug-ins register theirs in the entry-point group `gymnast.algorithms`."""

from __future__ import annotations

from gymnast import plugins
from gymnast.config.algorithms.a2c import A2CConfig
from gymnast.config.algorithms.base import AlgorithmConfig, OnPolicyConfig, OptimizerConfig
from gymnast.config.algorithms.ppo import PPOConfig
from gymnast.config.algorithms.reinforce import ReinforceConfig

CONFIGS: dict[str, type[OnPolicyConfig]] = {"ppo": PPOConfig, "a2c": A2CConfig, "reinforce": ReinforceConfig}

__all__ = [
    "CONFIGS",
    "A2CConfig",
    "AlgorithmConfig",
    "OnPolicyConfig",
    "OptimizerConfig",
    "PPOConfig",
    "ReinforceConfig",
    "config_of",
    "names",
]


def names() -> list[str]:
    """Ids of all algorithms, those of plug-ins last."""
    return list(dict.fromkeys([*CONFIGS, *(plugin.name for plugin in plugins.installed(plugins.ALGORITHMS))]))


def config_of(algorithm: str) -> type[AlgorithmConfig] | None:
    """The settings of an algorithm, shipped or from a plug-in; None if it is unknown."""
    if algorithm in CONFIGS:
        return CONFIGS[algorithm]
    plugin = plugins.find(plugins.ALGORITHMS, algorithm)
    if plugin is None:
        return None
    config = getattr(plugins.load(plugin), "Config", None)
    if not (isinstance(config, type) and issubclass(config, AlgorithmConfig)):
        raise plugins.PluginError(f"The {plugin} has no `Config`, a subclass of gymnast's AlgorithmConfig.")
    return config
