"""Sensible settings for any installed env (ENV-7)."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import parts
from gymnast.envs.closing import close
from gymnast.envs.make import make_one
from gymnast.envs.spaces import leaves

DECIDING = ("module", "kwargs", "time_limit", "atari", "wrappers")
"""What an env section says about the env itself, and so about its spaces."""
WHOLE_EPISODES = 1000
"""Where REINFORCE cuts off the episodes of an env without a time limit."""

CONTINUOUS = {"n_steps": 256, "batch_size": 0.0625, "n_epochs": 10, "normalize_reward": True, "learning_rate": 3e-4}
"""PPO's settings where an action has a continuous part."""
DISCRETE = {"n_steps": 128, "batch_size": 0.25, "n_epochs": 4, "ent_coef": 0.01, "learning_rate": 1e-3}
"""PPO's settings elsewhere."""


def generic_defaults(env_id: str, algorithm: str, section: dict[str, Any] | None = None) -> dict[str, Any]:
    """Sensible settings for any installed env, chosen from its spaces (ENV-7); `section` is what the user says of it."""
    known = {key: value for key, value in (section or {}).items() if key in DECIDING}
    env = make_one(EnvConfig.model_validate({**known, "id": env_id}))
    try:
        observation, action, spec = env.observation_space, env.action_space, env.spec
    finally:
        close(env)
    continuous = any(isinstance(part, spaces.Box) for part in parts(action))
    vector = any(isinstance(leaf, spaces.Box) and leaf.dtype.kind == "f" for _, _, leaf in leaves(observation))
    threshold = spec.reward_threshold if spec else None
    settings: dict[str, Any] = {
        "env": {"id": env_id, "n_envs": 8},
        "policy": {"normalize_obs": bool(vector)},
        "algo": {"id": algorithm},
        "train": {"env_steps": 1_000_000 if continuous else 500_000},
        "spec": {"horizon": spec.max_episode_steps if spec else None},
    }
    if threshold is not None:
        settings["spec"] |= {"solved_at": float(threshold), "solved_source": "Gymnasium's registry (reward_threshold)"}
    if algorithm == "ppo":
        settings["algo"] |= CONTINUOUS if continuous else DISCRETE
    elif algorithm == "reinforce" and (spec is None or spec.max_episode_steps is None):
        settings["env"]["time_limit"] = WHOLE_EPISODES
    return settings
