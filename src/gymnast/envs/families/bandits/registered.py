"""Registers the bandits with Gymnasium. Entry points are strings: an env is imported when it is made."""

from __future__ import annotations

import gymnasium as gym

from gymnast.envs.families.bandits import HOME, HORIZON, REGISTERED

for _id, _kwargs in REGISTERED.items():
    if _id not in gym.registry:
        gym.register(_id, f"{HOME}.env:BanditEnv", max_episode_steps=HORIZON, kwargs=_kwargs, disable_env_checker=True)
