"""From the policy's array of actions to what each env is given, and back to something printable.

The policy's array holds one action per row. Dict and Tuple actions lie in it as one row of floats, part by part in the
order of the space; choices are whole numbers counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.errors import EnvError


def is_composite(space: spaces.Space) -> bool:
    """Whether actions have parts."""
    return isinstance(space, (spaces.Dict, spaces.Tuple))


def parts(space: spaces.Space) -> list[spaces.Space]:
    """The simple spaces inside `space`, in the order in which their actions lie side by side."""
    if isinstance(space, spaces.Dict):
        return [leaf for part in space.spaces.values() for leaf in parts(part)]
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in parts(part)]
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)):
        return [space]
    raise EnvError(
        f"Action space {space} is not supported: expected Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of those."
    )


def layout(space: spaces.Space) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of one action in an array."""
    leaves = parts(space)
    if is_composite(space):
        return (sum(_size(leaf) for leaf in leaves),), np.float32
    return tuple(space.shape or ()), space.dtype


def _size(leaf: spaces.Space) -> int:
    return math.prod(leaf.shape or ())


def executed(action: np.ndarray, space: spaces.Space) -> Any:
    """What the env is given for actions [..., *shape]: clipped to the bounds, counted from the space's start.

    For Dict and Tuple spaces a dict or tuple of such arrays, as Gymnasium's vector envs take them.
    """
    if is_composite(space):
        return _unpack(action, space, 0)[0]
    if isinstance(space, spaces.Box):
        return np.clip(action, space.low, space.high)
    return np.asarray(action + getattr(space, "start", 0))


def _unpack(action: np.ndarray, space: spaces.Space, at: int) -> tuple[Any, int]:
    """The part of `action` [..., K] that begins at column `at`, and where the next one begins."""
    if isinstance(space, spaces.Dict):
        found = {}
        for key, part in space.spaces.items():
            found[key], at = _unpack(action, part, at)
        return found, at
    if isinstance(space, spaces.Tuple):
        items = []
        for part in space.spaces:
            item, at = _unpack(action, part, at)
            items.append(item)
        return tuple(items), at
    end = at + _size(space)
    piece = action[..., at:end].reshape(*action.shape[:-1], *(space.shape or ()))
    if isinstance(space, spaces.Box):
        whole = piece
    else:
        whole = np.rint(piece).astype(np.int64)
    return executed(whole, space).astype(space.dtype), end


def row(actions: Any, i: int) -> Any:
    """Action of one env out of batched ones: Python ints for Discrete, own arrays otherwise."""
    if isinstance(actions, dict):
        return {key: row(part, i) for key, part in actions.items()}
    if isinstance(actions, tuple):
        return tuple(row(part, i) for part in actions)
    one = actions[i]
    if one.ndim == 0:
        return one.item()
    return one.copy()


def converter(space: spaces.Space) -> Callable[[np.ndarray], Any]:
    """Batched actions as single envs want them: Python ints for Discrete (cheapest), own array rows otherwise.

    The rows are copies because an env may keep its last action while the caller reuses the array.
    """
    if is_composite(space):
        return lambda a: [row(batched, i) for batched in (executed(a, space),) for i in range(len(a))]
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        if start:
            return lambda a: (a + start).tolist()
        return lambda a: a.tolist()
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.asarray(space.start)
        return lambda a: (a + starts).astype(space.dtype, copy=False)
    return lambda a: np.array(a, space.dtype)


def plain(action: Any) -> Any:
    """The action as lists and numbers, for files and messages."""
    if isinstance(action, dict):
        return {key: plain(part) for key, part in action.items()}
    if isinstance(action, tuple):
        return [plain(part) for part in action]
    if isinstance(action, (np.ndarray, np.generic)):
        return action.tolist()
    return action


def random_actions(
    space: spaces.Space, n: int, random: np.random.Generator, mask: np.ndarray | None = None
) -> np.ndarray:
    """Uniform actions for n envs; only possible ones if there is a mask."""
    if is_composite(space):
        pieces = [random_actions(leaf, n, random).reshape(n, -1) for leaf in parts(space)]
        return np.concatenate(pieces, -1).astype(np.float32)
    if mask is not None:
        sizes = [int(space.n)] if isinstance(space, spaces.Discrete) else [int(k) for k in space.nvec]  # type: ignore[attr-defined]
        scores = np.split(np.where(mask, random.random(mask.shape), -1.0), np.cumsum(sizes)[:-1], axis=-1)
        choices = np.stack([part.argmax(-1) for part in scores], -1)
        if isinstance(space, spaces.Discrete):
            return choices[:, 0]
        return choices
    if isinstance(space, spaces.Discrete):
        return random.integers(0, int(space.n), n)
    if isinstance(space, spaces.MultiDiscrete):
        return random.integers(0, np.asarray(space.nvec), (n, *space.nvec.shape))
    if isinstance(space, spaces.MultiBinary):
        return random.integers(0, 2, (n, *space.shape))
    assert isinstance(space, spaces.Box)
    low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
    return random.uniform(low, high, (n, *space.shape)).astype(np.float32)


def choices_of(space: spaces.Space) -> tuple[int, ...]:
    """How many choices each part of a discrete action has; empty if actions are continuous, or some of them are."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in np.ravel(space.nvec))
    if isinstance(space, spaces.MultiBinary):
        return (2,) * int(np.prod(space.shape))
    return ()
