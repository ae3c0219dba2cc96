"""Names people bring along: other libraries' hyperparameter names and renamed environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnast.errors import UsageError

RENAMED_ENVS = {
    "Taxi-v3": "Taxi-v4",
    "CliffWalking-v0": "CliffWalking-v1",
    "LunarLander-v2": "LunarLander-v3",
    "LunarLanderContinuous-v2": "LunarLanderContinuous-v3",
    "VizDoom-Basic-v0": "VizdoomBasic-v1",
}

# Stable-Baselines3 / rl-zoo and CleanRL names of our keys.
ALIASES: dict[str, str] = {
    "n_timesteps": "train.env_steps",
    "total_timesteps": "train.env_steps",
    "total-timesteps": "train.env_steps",
    "n_envs": "env.n_envs",
    "num_envs": "env.n_envs",
    "num_steps": "algo.n_steps",
    "update_epochs": "algo.n_epochs",
    "clip_coef": "algo.clip_range",
    "lr": "algo.learning_rate",
    "entropy_coef": "algo.ent_coef",
    "value_coef": "algo.vf_coef",
    "norm_adv": "algo.normalize_advantage",
    "num_minibatches": "algo.batch_size",
    "env_kwargs": "env.kwargs",
    "env_id": "env.id",
    "env_wrapper": "env.wrappers",
    "net_arch": "policy.hidden",
    "eval_freq": "eval.every",
    "n_eval_episodes": "eval.episodes",
    "eval_episodes": "eval.episodes",
    "save_freq": "train.checkpoint_every",
    "normalize": "policy.normalize_obs",
    "log_std_init": "policy.log_std_init",
}


def _one_over(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1:
        raise UsageError(f"'num_minibatches' must be a whole number of at least 1 (got {value!r}).")
    return 1.0 / value


def _on_off(value: Any) -> Any:
    return ("batch" if value else "off") if value in (0, 1) else value


# Aliases whose value means something else than ours.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {"num_minibatches": _one_over, "norm_adv": _on_off}
