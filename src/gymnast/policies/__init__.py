"""Policies by id."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from gymnasium import spaces

from gymnast import own_code, plugins
from gymnast.config.schema import SHIPPED_POLICY, PolicyConfig
from gymnast.errors import ConfigError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.base import Head, Policy
from gymnast.policies.own import own_policy
from gymnast.policies.recurrent.actor_critic import RecurrentActorCritic

_lock = threading.Lock()
"""Two threads that put the same generator back must not do so crosswise."""


def make_policy(
    config: PolicyConfig,
    observation_space: spaces.Space,
    action_space: spaces.Space,
    *,
    critic: bool = True,
    heads: Sequence[Head] = (),
    generator: torch.Generator | None = None,
) -> Policy:
    """The policy a config names; a plug-in's is `Policy` in its module, called with the same arguments.

    Layers draw first weights from torch's own generator when they are made. It stays as it was: it belongs to the program
    that calls us.
    """
    with _lock, torch.random.fork_rng(devices=[]):
        return _made(config, observation_space, action_space, critic=critic, heads=heads, generator=generator)


def _made(config: PolicyConfig, observation_space: spaces.Space, action_space: spaces.Space, **asked: Any) -> Policy:
    if config.id == SHIPPED_POLICY and config.memory != "none":
        return RecurrentActorCritic(config, observation_space, action_space, **asked)
    if config.id == SHIPPED_POLICY:
        return ActorCritic(config, observation_space, action_space, **asked)
    if own_code.is_own(config.id):
        own: Policy = own_policy(config.id)(config, observation_space, action_space, **asked)
        return own
    plugin = plugins.find(plugins.POLICIES, config.id)
    if plugin is None:
        raise ConfigError(f"No installed package has the policy '{config.id}'.")
    found = getattr(plugins.load(plugin), "Policy", None)
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise plugins.PluginError(f"The {plugin} has no `Policy`, a subclass of gymnast's Policy.")
    made: Policy = found(config, observation_space, action_space, **asked)
    return made
