"""Names people bring along: other libraries' hyperparameter names and renamed environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnast.errors import UsageError

# Env, current version, former versions.
_VERSIONS: list[tuple[str, int, tuple[int, ...]]] = [
    ("Taxi", 4, (3,)),
    ("CliffWalking", 1, (0,)),
    ("Pendulum", 1, (0,)),
    ("FrozenLake", 1, (0,)),
    ("Blackjack", 1, (0,)),
    ("LunarLander", 3, (1, 2)),
    ("LunarLanderContinuous", 3, (1, 2)),
    ("BipedalWalker", 3, (1, 2)),
    ("BipedalWalkerHardcore", 3, (1, 2)),
    ("CarRacing", 3, (0, 1, 2)),
    *((env, 5, (2, 3, 4)) for env in ("HalfCheetah", "Hopper", "Walker2d", "Ant", "Humanoid", "Swimmer")),
    *((env, 5, (2, 4)) for env in ("Reacher", "Pusher", "InvertedPendulum", "InvertedDoublePendulum")),
    ("HumanoidStandup", 5, (2, 4)),
]
RENAMED_ENVS = {
    **{f"{env}-v{old}": f"{env}-v{current}" for env, current, former in _VERSIONS for old in former},
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
    "deterministic": "eval.deterministic",
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
