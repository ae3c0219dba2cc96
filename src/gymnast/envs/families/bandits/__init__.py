"""Multi-armed bandits, ours: registered with Gymnasium when this package is imported (ENV-6).

Entry points are strings: registering costs nothing, and an env is imported when it is made.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

HORIZON = 200
"""Pulls in an episode: a time limit like any other, `env.time_limit` changes it."""

# The ten arms of distribution 12 of Auer, Cesa-Bianchi and Fischer 2002, best arm first.
AUER_12 = [0.9, 0.8, 0.8, 0.8, 0.7, 0.7, 0.7, 0.6, 0.6, 0.6]

REGISTERED: dict[str, dict[str, Any]] = {
    "gymnast/Bandit-v0": {"means": AUER_12},
    "gymnast/RandomBandit-v0": {"arms": 5, "observe": "statistics"},
    "gymnast/DriftingBandit-v0": {"arms": 5, "drift": 0.03, "observe": "statistics", "memory": 0.95},
    "gymnast/ContextualBandit-v0": {"arms": 4, "context": 2},
}
"""Env ids and their default arguments."""

for _id, _kwargs in REGISTERED.items():
    if _id not in gym.registry:
        gym.register(
            _id, f"{__name__}.env:BanditEnv", max_episode_steps=HORIZON, kwargs=_kwargs, disable_env_checker=True
        )
