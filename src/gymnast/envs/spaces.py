"""How spaces become arrays: the layouts the rollout stores and the actions it sends back.

Observations are one array, or a dict of arrays for Dict spaces. A Tuple of Discrete spaces becomes one integer array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.errors import EnvError

Observation = np.ndarray | dict[str, np.ndarray]


def canonical(space: spaces.Space) -> spaces.Space:
    """The space as the contract delivers it: Box, Discrete, MultiDiscrete, MultiBinary, or a flat Dict of those."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: canonical(part) for key, part in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        parts = space.spaces
        if all(isinstance(part, spaces.Discrete) for part in parts):
            return spaces.MultiDiscrete([int(part.n) for part in parts])  # type: ignore[attr-defined]
        raise EnvError(
            f"Tuple observations of {[type(part).__name__ for part in parts]} are not supported, only of Discrete."
        )
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec) if np.any(space.start) else space
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return space
    raise EnvError(
        f"Observation space {space} is not supported: expected Box, Discrete, MultiDiscrete, MultiBinary, Tuple or Dict."
    )


def encoder(space: spaces.Space) -> Callable[[Any], Any] | None:
    """A function from the env's raw observation to the canonical one, or None when they are the same."""
    if isinstance(space, spaces.Dict):
        inner = {key: encoder(part) for key, part in space.spaces.items()}
        if any(inner.values()):
            return lambda obs: {key: f(obs[key]) if f else obs[key] for key, f in inner.items()}
        return None
    if isinstance(space, spaces.Tuple):
        starts = [int(part.start) for part in space.spaces]  # type: ignore[attr-defined]
        if any(starts):
            return lambda obs: [int(value) - start for value, start in zip(obs, starts, strict=True)]
        return list
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        start = np.array(space.start)
        return lambda obs: obs - start
    return None


def allocate(space: spaces.Space, leading: tuple[int, ...]) -> Observation:
    """Zeroed arrays for `leading` many canonical observations."""
    if isinstance(space, spaces.Dict):
        return {key: np.zeros(leading + _shape(part), _dtype(part)) for key, part in space.spaces.items()}
    return np.zeros(leading + _shape(space), _dtype(space))


def _shape(space: spaces.Space) -> tuple[int, ...]:
    return tuple(space.shape or ())


def _dtype(space: spaces.Space) -> np.dtype:
    if isinstance(space, spaces.Box):
        # float64 observations are stored as float32: the networks read float32 and the rollout is half the size.
        return np.dtype(np.float32) if space.dtype == np.float64 else np.dtype(space.dtype)
    return np.dtype(np.int64)


def put(target: Observation, index: int, obs: Any) -> None:
    """Write one canonical observation into row `index`."""
    if isinstance(target, dict):
        for key, array in target.items():
            array[index] = obs[key]
    else:
        target[index] = obs


def copy_rows(target: Observation, source: Observation) -> None:
    """Copy a whole row block."""
    if isinstance(target, dict):
        for key, array in target.items():
            array[...] = source[key]
    else:
        target[...] = source


def row(obs: Observation, index: Any) -> Observation:
    """Rows `index` of an observation batch, as views where numpy can."""
    if isinstance(obs, dict):
        return {key: array[index] for key, array in obs.items()}
    return obs[index]


def stack(observations: list[Any], space: spaces.Space) -> Observation:
    """Single canonical observations as one batch."""
    batch = allocate(space, (len(observations),))
    for i, obs in enumerate(observations):
        put(batch, i, obs)
    return batch


def n_masked_actions(space: spaces.Space) -> int | None:
    """Length of an action mask for this action space, or None when it has none."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(np.sum(space.nvec))
    return None
