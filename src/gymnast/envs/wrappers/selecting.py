"""Some components of a vector, so that one observation does not say everything."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gymnast.envs.wrappers.transforms import Transform
from gymnast.errors import ConfigError


class Select(Transform):
    """Shows some components of a vector and leaves the others out."""

    name = "select"

    def __init__(self, space: spaces.Box, components: list[int]) -> None:
        if len(space.shape) != 1:
            raise ConfigError(f"Wrapper 'select' needs vectors, this env has observations {space}.")
        wrong = [number for number in components if number >= space.shape[0]]
        if wrong:
            raise ConfigError(
                f"Wrapper 'select' cannot show component {wrong[0]}: the observation has {space.shape[0]}, numbered from 0."
            )
        self._components = np.asarray(components)
        dtype = space.dtype.type if space.dtype is not None else np.float32
        self.space = spaces.Box(space.low[self._components], space.high[self._components], dtype=dtype)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """The chosen components, in their order."""
        return np.asarray(obs[..., self._components])
