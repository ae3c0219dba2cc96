"""Discrete observations as vectors."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.vector import ObservationWrapper
from gymnast.errors import ConfigError


class OneHot(ObservationWrapper):
    """Discrete or MultiDiscrete observations as one-hot vectors."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        sizes = _sizes(inner.observation_space, "one_hot")
        self._offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self.observation_space = spaces.Box(0.0, 1.0, (sum(sizes),), np.float32)

    def transform(self, obs: np.ndarray, out: np.ndarray) -> None:
        """Ones at the indices."""
        columns = obs.reshape(len(obs), -1) + self._offsets
        out[...] = 0.0
        np.put_along_axis(out, columns, 1.0, axis=1)


class ArrayEncoding(ObservationWrapper):
    """Discrete or MultiDiscrete observations as plain numbers scaled to 0..1."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        sizes = np.array(_sizes(inner.observation_space, "array"))
        self._scale = (1.0 / np.maximum(sizes - 1, 1)).astype(np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (len(sizes),), np.float32)

    def transform(self, obs: np.ndarray, out: np.ndarray) -> None:
        """Index divided by the largest index."""
        np.multiply(obs.reshape(len(obs), -1), self._scale, out=out)


def _sizes(space: spaces.Space, name: str) -> list[int]:
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in np.ravel(space.nvec)]
    raise ConfigError(f"Wrapper '{name}' needs Discrete or Tuple-of-Discrete observations, this env has {space}.")
