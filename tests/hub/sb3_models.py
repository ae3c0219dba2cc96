"""Real Stable-Baselines3 models of envs with any spaces, saved as their users save them."""

from __future__ import annotations

import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

ALGORITHMS: dict[str, Any] = {"ppo": PPO, "a2c": A2C}
OBSERVATIONS: dict[str, spaces.Space] = {
    "Box": spaces.Box(-np.inf, np.inf, (5,), np.float32),
    "Matrix": spaces.Box(-3.0, 3.0, (2, 3), np.float64),
    "Bytes": spaces.Box(0, 255, (6,), np.uint8),
    "Discrete": spaces.Discrete(7),
    "MultiDiscrete": spaces.MultiDiscrete([3, 2, 4]),
    "MultiBinary": spaces.MultiBinary(5),
    # Not in alphabetical order, as a Dict made from an OrderedDict keeps it.
    "Dict": spaces.Dict(
        OrderedDict(
            z=spaces.Box(-9.0, 9.0, (2,), np.float32), a=spaces.Discrete(3), m=spaces.Box(-9.0, 9.0, (2, 2), np.float32)
        )
    ),
}
ACTIONS: dict[str, spaces.Space] = {
    "Discrete": spaces.Discrete(3),
    "Box": spaces.Box(np.array([-30.0, -9.0, 0.0], np.float32), np.array([30.0, 1.0, 9.0], np.float32)),
    "MultiDiscrete": spaces.MultiDiscrete([2, 4]),
    "MultiBinary": spaces.MultiBinary(4),
}


class AnySpaces(gym.Env):
    """Random observations of any space."""

    def __init__(self, observation: spaces.Space, action: spaces.Space) -> None:
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), float(np.sum(action)), False, False, {}


def env_id(observation: str, action: str) -> str:
    """A registered env with the named spaces; episodes last 20 steps."""
    name = f"Spaces{observation}{action}-v0"
    if name not in gym.registry:
        gym.register(name, lambda: AnySpaces(OBSERVATIONS[observation], ACTIONS[action]), max_episode_steps=20)
    return name


def observations(space: spaces.Space, count: int, seed: int = 0) -> Any:
    """A batch of observations; Box ones reach far to both sides of 0."""
    random = np.random.default_rng(seed)
    if isinstance(space, spaces.Dict):
        return {key: observations(part, count, seed + i) for i, (key, part) in enumerate(space.spaces.items())}
    if isinstance(space, spaces.Box) and space.dtype != np.uint8:
        return (random.standard_normal((count, *space.shape)) * 2.5).astype(space.dtype)
    space.seed(seed)
    return np.stack([space.sample() for _ in range(count)])


def make(algorithm: str, env: str | VecEnv, *, shake_by: float = 0.4, **settings: Any) -> BaseAlgorithm:
    """A model with weights far from 0, so that every observation matters."""
    size = {"n_steps": 8, "batch_size": 8} if algorithm == "ppo" else {"n_steps": 8}
    vector = DummyVecEnv([lambda: gym.make(env)]) if isinstance(env, str) else env
    policy = "MultiInputPolicy" if isinstance(vector.observation_space, spaces.Dict) else "MlpPolicy"
    policy = settings.pop("policy", policy)
    model = ALGORITHMS[algorithm](policy, vector, device="cpu", seed=1, **{**size, **settings})
    shake(model, shake_by)
    return model


def shake(model: BaseAlgorithm, by: float) -> None:
    """Random weights and biases."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=by)


def normalised(env: str, **settings: Any) -> VecNormalize:
    """A VecNormalize that has seen observations."""
    vector = VecNormalize(DummyVecEnv([lambda: gym.make(env)]), **settings)
    space = vector.observation_space
    if vector.norm_obs and isinstance(space, spaces.Dict):
        for key, part in vector.obs_rms.items():
            part.update(observations(space[key], 200, seed=5) * 1.5 + 1.0)
    elif vector.norm_obs:
        vector.obs_rms.update(observations(space, 200, seed=5) * 1.5 + 1.0)
    vector.ret_rms.update(np.array([1.0, 5.0]))
    return vector


def rewritten(source: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """A copy of a zip with members replaced, or left out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = changes.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return target
