"""Sensible settings for any installed env (ENV-7)."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import parts
from gymnast.envs.make import make_one
from gymnast.envs.spaces import leaves
from gymnast.errors import UsageError


def generic_defaults(env_id: str, algorithm: str, section: dict[str, Any] | None = None) -> dict[str, Any]:
    """Sensible settings for any installed env, chosen from its spaces (ENV-7); `section` is what the user says of it."""
    known = {key: value for key, value in (section or {}).items() if key in ("module", "kwargs", "time_limit")}
    env = make_one(EnvConfig.model_validate({**known, "id": env_id}))
    try:
        observation, action, spec = env.observation_space, env.action_space, env.spec
    finally:
        env.close()
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
        settings["algo"] |= (
            {"n_steps": 256, "batch_size": 0.0625, "n_epochs": 10, "normalize_reward": True}
            if continuous
            else {"n_steps": 128, "batch_size": 0.25, "n_epochs": 4, "ent_coef": 0.01}
        )
        settings["algo"]["learning_rate"] = 3e-4 if continuous else 1e-3
    elif algorithm == "reinforce" and (spec is None or spec.max_episode_steps is None):
        raise UsageError(f"REINFORCE plays whole episodes and '{env_id}' has no time limit: set env.time_limit.")
    return settings
