"""The policy that a config would train; imports torch."""

from __future__ import annotations

from gymnasium import spaces

from gymnast.algorithms import policy_for
from gymnast.config.schema import RunConfig
from gymnast.envs.make import make_envs
from gymnast.policies.base import Policy


def policy_of(config: RunConfig) -> tuple[Policy, spaces.Space]:
    """Build it, untrained, with the action space of one env made for its spaces."""
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        policy = policy_for(config, envs.observation_space, envs.action_space)
    finally:
        envs.close()
    return policy, envs.action_space
