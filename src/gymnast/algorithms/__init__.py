"""Algorithms by id."""

from __future__ import annotations

from gymnast import plugins
from gymnast.algorithms.a2c import A2C
from gymnast.algorithms.base import Algorithm
from gymnast.algorithms.ppo import PPO
from gymnast.algorithms.reinforce import Reinforce
from gymnast.config.algorithms import OnPolicyConfig
from gymnast.errors import ConfigError

ALGORITHMS: dict[str, type[Algorithm]] = {"ppo": PPO, "a2c": A2C, "reinforce": Reinforce}


def make_algorithm(config: OnPolicyConfig, n_envs: int) -> Algorithm:
    """The algorithm a config names."""
    if config.id in ALGORITHMS:
        return ALGORITHMS[config.id](config, n_envs)
    plugin = plugins.find(plugins.ALGORITHMS, config.id)
    if plugin is None:
        raise ConfigError(f"No installed package has the algorithm '{config.id}'.")
    found = getattr(plugins.load(plugin), "Algorithm", None)
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise plugins.PluginError(f"The {plugin} has no `Algorithm`, a subclass of gymnast's Algorithm.")
    made: Algorithm = found(config, n_envs)
    return made
