"""Algorithms by id."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from gymnast import plugins
from gymnast.algorithms.a2c import A2C
from gymnast.algorithms.base import Algorithm
from gymnast.algorithms.ppo import PPO
from gymnast.algorithms.reinforce import Reinforce
from gymnast.config.algorithms import AlgorithmConfig
from gymnast.config.schema import RunConfig
from gymnast.errors import ConfigError
from gymnast.policies.base import Policy

ALGORITHMS: dict[str, type[Algorithm]] = {"ppo": PPO, "a2c": A2C, "reinforce": Reinforce}


def make_algorithm(config: AlgorithmConfig, n_envs: int) -> Algorithm:
    """The on-policy algorithm that a config names."""
    if config.id in ALGORITHMS:
        return ALGORITHMS[config.id](config, n_envs)
    module, plugin = _plugin(config.id)
    found = getattr(module, "Algorithm", None)
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise plugins.PluginError(f"The {plugin} has no `Algorithm`, a subclass of gymnast's Algorithm.")
    made: Algorithm = found(config, n_envs)
    return made


def own_trainer(algorithm: str) -> Any:
    """The trainer class of an algorithm that does not learn from rollouts; None for all that do."""
    if algorithm in ALGORITHMS:
        return None
    return getattr(_plugin(algorithm)[0], "Trainer", None)


def policy_for(config: RunConfig, observation_space: spaces.Space, action_space: spaces.Space) -> Policy:
    """The policy that a run trains, not yet trained."""
    trainer = own_trainer(config.algo.id)
    if trainer is not None:
        made: Policy = trainer.make_policy(config, observation_space, action_space)
        return made
    return make_algorithm(config.algo, 1).make_policy(config.policy, observation_space, action_space)


def _plugin(algorithm: str) -> tuple[Any, plugins.Plugin]:
    plugin = plugins.find(plugins.ALGORITHMS, algorithm)
    if plugin is None:
        raise ConfigError(f"No installed package has the algorithm '{algorithm}'.")
    return plugins.load(plugin), plugin
