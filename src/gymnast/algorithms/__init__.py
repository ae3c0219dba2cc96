"""Algorithms by id."""

from __future__ import annotations

from gymnast.algorithms.a2c import A2C
from gymnast.algorithms.base import Algorithm
from gymnast.algorithms.ppo import PPO
from gymnast.algorithms.reinforce import Reinforce
from gymnast.config.algorithms import OnPolicyConfig

ALGORITHMS: dict[str, type[Algorithm]] = {"ppo": PPO, "a2c": A2C, "reinforce": Reinforce}


def make_algorithm(config: OnPolicyConfig, n_envs: int) -> Algorithm:
    """The algorithm a config names."""
    return ALGORITHMS[config.id](config, n_envs)
