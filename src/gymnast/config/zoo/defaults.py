"""What an entry that says nothing means: the defaults of stable_baselines3.PPO and A2C (2.9), by our names."""

from __future__ import annotations

from typing import Any

from gymnast.config.policy_kwargs import ADAM, RMSPROP

ALGORITHMS = ("ppo", "a2c")
OTHER_ALGORITHMS = ("ars", "crossq", "ddpg", "dqn", "her", "ppo_lstm", "qrdqn", "sac", "td3", "tqc", "trpo")
TEMPLATES = ("default", "atari")
"""Entries for many envs; the zoo falls back to them, gymnast only on request."""

_BOTH: dict[str, Any] = {
    "gamma": 0.99,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "value_loss": "mse",
    "normalize_reward": False,
    "reward_clip": 10.0,
}
ALGO: dict[str, dict[str, Any]] = {
    "ppo": {
        **_BOTH,
        "n_steps": 2048,
        "batch_size": 64,
        "n_epochs": 10,
        "learning_rate": 3e-4,
        "gae_lambda": 0.95,
        "clip_range": 0.2,
        "clip_range_vf": None,
        "normalize_advantage": "batch",
        "target_kl": None,
        "optimizer": ADAM,
    },
    "a2c": {
        **_BOTH,
        "n_steps": 5,
        "learning_rate": 7e-4,
        "gae_lambda": 1.0,
        "normalize_advantage": "off",
        "optimizer": RMSPROP,
    },
}
POLICY: dict[str, Any] = {
    "cnn": "none",  # MlpPolicy lays images out flat
    "cnn_features": None,
    "background": 0.0,
    "precision": "float32",
    "hidden": [64, 64],
    "critic_hidden": None,
    "shared_trunk": False,
    "activation": "tanh",
    "init": "orthogonal",
    "log_std_init": 0.0,
    "normalize_obs": False,
    "normalize_obs_steps": None,
    "obs_clip": 10.0,
}
POLICIES: dict[str, dict[str, Any]] = {
    "MlpPolicy": {},
    "CnnPolicy": {"cnn": "nature", "cnn_features": 512, "hidden": []},
    "MultiInputPolicy": {"cnn": "auto", "cnn_features": 256},
}
"""What the kind of policy changes."""
ENV: dict[str, Any] = {"n_envs": 1, "time_limit": None, "wrappers": [], "action_mask": "off"}
TRAIN: dict[str, Any] = {"stop_when_solved": False, "stop": []}
"""The zoo trains to the end of the budget."""
