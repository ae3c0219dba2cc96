"""How spaces become arrays: the layouts the rollout stores and the actions it sends back.

Observations are one array, or a flat dict of arrays for Dict and Tuple spaces: nested parts get dotted names
(`robot.camera`, `0`). A Tuple of Discrete spaces becomes one integer array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.errors import EnvError

Observation = np.ndarray | dict[str, np.ndarray]
Path_ = tuple[Any, ...]


def leaves(space: spaces.Space) -> list[tuple[str, Path_, spaces.Space]]:
    """The simple spaces inside nested Dicts and Tuples: dotted name, where it lies in an observation, and the space."""
    if not _is_nested(space):
        return [("", (), space)]
    inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)  # type: ignore[attr-defined]
    found = []
    for key, part in inner:
        for name, path, leaf in leaves(part):
            found.append((f"{key}.{name}" if name else str(key), (key, *path), leaf))
    return found


def _is_nested(space: spaces.Space) -> bool:
    """Whether observations have named parts. A Tuple of Discrete (Blackjack's) is one array of whole numbers instead."""
    if isinstance(space, spaces.Tuple):
        return not all(isinstance(part, spaces.Discrete) for part in space.spaces)
    return isinstance(space, spaces.Dict)


def canonical(space: spaces.Space) -> spaces.Space:
    """The space as the contract delivers it: Box, Discrete, MultiDiscrete, MultiBinary, or a flat Dict of those."""
    if _is_nested(space):
        parts = leaves(space)
        names = [name for name, _, _ in parts]
        if len(set(names)) < len(names):
            raise EnvError(f"Two parts of the observation space {space} have the same dotted name: rename one of them.")
        return spaces.Dict({name: canonical(leaf) for name, _, leaf in parts})
    if isinstance(space, spaces.Tuple):
        return spaces.MultiDiscrete([int(part.n) for part in space.spaces])  # type: ignore[attr-defined]
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        if np.any(space.start):
            return spaces.MultiDiscrete(space.nvec)
        return space
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return space
    raise EnvError(
        f"Observation space {space} is not supported: expected Box, Discrete, MultiDiscrete, MultiBinary, Tuple or Dict."
    )


def choices(space: spaces.Space) -> list[tuple[str, np.ndarray]]:
    """The parts of a canonical space that count choices from 0, and how many there are: others index a table by them."""
    parts: dict[str, spaces.Space] = {"": space}
    if isinstance(space, spaces.Dict):
        parts = space.spaces
    found: list[tuple[str, np.ndarray]] = []
    for key, part in parts.items():
        if isinstance(part, spaces.Discrete):
            found.append((key, np.asarray(part.n, np.uint64)))
        elif isinstance(part, spaces.MultiDiscrete):
            found.append((key, np.asarray(part.nvec, np.uint64)))
    return found


def encoder(space: spaces.Space) -> Callable[[Any], Any] | None:
    """A function from the env's raw observation to the canonical one, or None when they are the same."""
    if _is_nested(space):
        parts = [(name, path, encoder(leaf)) for name, path, leaf in leaves(space)]
        if isinstance(space, spaces.Dict) and all(len(path) == 1 and not f for _, path, f in parts):
            return None
        return lambda obs: {name: f(at(obs, path)) if f else at(obs, path) for name, path, f in parts}
    if isinstance(space, spaces.Tuple):
        starts = [int(part.start) for part in space.spaces]  # type: ignore[attr-defined]
        if any(starts):
            return lambda obs: [int(value) - start for value, start in zip(obs, starts, strict=True)]
        return list
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        start = np.array(space.start)
        return lambda obs: obs - start
    return None


def starts(space: spaces.Space) -> dict[str, np.ndarray]:
    """Where choices do not count from 0, by the name of the part (empty for an observation without parts)."""
    found: dict[str, np.ndarray] = {}
    for name, _, leaf in leaves(space):
        if isinstance(leaf, spaces.Tuple):
            start = np.array([part.start for part in leaf.spaces], np.int64)  # type: ignore[attr-defined]
        elif isinstance(leaf, (spaces.Discrete, spaces.MultiDiscrete)):
            start = np.asarray(leaf.start, np.int64)
        else:
            continue
        if start.any():
            found[name] = start
    return found


def at(obs: Any, path: Path_) -> Any:
    """The part of a nested observation that lies at `path`."""
    for key in path:
        obs = obs[key]
    return obs


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
        if space.dtype == np.float64:
            return np.dtype(np.float32)
        return np.dtype(space.dtype)
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
            _copy(array, source[key])
    else:
        _copy(target, source)  # type: ignore[arg-type]


def _copy(target: np.ndarray, source: np.ndarray) -> None:
    if target.ndim > 2 and target.strides[-3] < target.strides[-1]:
        # Images into memory that has their channels last: numpy's own order of copying takes four times as long.
        for channel in range(target.shape[-3]):
            target[..., channel, :, :] = source[..., channel, :, :]
    else:
        target[...] = source


def row(obs: Observation, index: Any) -> Observation:
    """Rows `index` of an observation batch, as views where numpy can."""
    if isinstance(obs, dict):
        return {key: array[index] for key, array in obs.items()}
    rows: np.ndarray = obs[index]
    return rows


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
