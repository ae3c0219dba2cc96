"""Changes of observations that remember nothing: the same function runs around one env or on the whole batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.parts import changed_parts
from gymnast.envs.wrappers.single import Reset, SingleEnvWrapper, Step
from gymnast.envs.wrappers.vector import ObservationWrapper


class Transform(ABC):
    """A function of one Box observation."""

    name: str
    space: spaces.Box
    """What comes out."""

    @abstractmethod
    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """The change of observations [..., *shape]."""


Parts = dict[str, Transform]


class TransformedEnv(SingleEnvWrapper):
    """Changes the observations of one env."""

    def __init__(self, env: gym.Env, kind: type[Transform], **arguments: Any) -> None:
        super().__init__(env)
        self._parts, self.observation_space = _build(env.observation_space, kind, arguments)

    def _changed(self, obs: Any) -> Any:
        if isinstance(obs, dict):
            return {**obs, **{key: change(np.asarray(obs[key])) for key, change in self._parts.items()}}
        return self._parts[""](np.asarray(obs))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Change the first observation."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._changed(obs), info

    def step(self, action: Any) -> Step:
        """Step, and change the observation."""
        obs, *rest = self.env.step(action)
        return (self._changed(obs), *rest)


class TransformedVector(ObservationWrapper):
    """Changes the observations of all slots."""

    def __init__(self, inner: VectorEnv, kind: type[Transform], **arguments: Any) -> None:
        super().__init__(inner)
        self._parts, self.observation_space = _build(inner.observation_space, kind, arguments)

    def transform(self, obs: Any, out: Any) -> None:
        """Change the parts it is about, and copy the others."""
        if not isinstance(obs, dict):
            out[...] = self._parts[""](obs)
            return
        for key, target in out.items():
            if key in self._parts:
                target[...] = self._parts[key](obs[key])
            else:
                target[...] = obs[key]


def _build(space: spaces.Space, kind: type[Transform], arguments: dict[str, Any]) -> tuple[Parts, spaces.Space]:
    parts = {key: kind(part, **arguments) for key, part in changed_parts(space, kind.name).items()}  # type: ignore[call-arg]
    if "" in parts:
        return parts, parts[""].space
    assert isinstance(space, spaces.Dict)
    return parts, spaces.Dict({**space.spaces, **{key: change.space for key, change in parts.items()}})
