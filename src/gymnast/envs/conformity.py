"""Whether a value is one observation of a space: what could only be misread, and what is merely odd.

numpy writes a scalar, a (1,), a string or a fraction into an array of another kind without a word. Other types of the same
value (a list, float64 for float32, a 0-d array) are fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

NUMBERS = "biuf"
"""Kinds of numpy types that are real numbers."""


def misfit(space: spaces.Space, obs: Any, part: str = "") -> str | None:
    """How `obs` cannot be an observation of `space`, as the rest of a sentence about "an observation"; None when it can."""
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, dict):
            return f"{part} of type {type(obs).__name__}, the space is a Dict of {_names(space.spaces)}"
        if any(key not in obs for key in space.spaces):
            return f"{part} with the keys {_names(obs)}, the space has {_names(space.spaces)}"
    elif isinstance(space, spaces.Tuple):
        if not isinstance(obs, (tuple, list, np.ndarray)) or len(obs) != len(space.spaces):
            return f"{part} that is {amount(obs)}, the space is a Tuple of {len(space.spaces)}"
    else:
        problem = _leaf_misfit(space, obs)
        if problem is None:
            return None
        return f"{part} {problem}"
    inner = (misfit(leaf, obs[key], f"{part}[{key!r}]") for key, leaf in _inner(space))
    return next((problem for problem in inner if problem is not None), None)


def oddities(space: spaces.Space, obs: Any, part: str = "") -> Iterator[tuple[str, str]]:
    """What is probably wrong with an observation that fits: a key for the kind, and the rest of a sentence as in `misfit`."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        for key, leaf in _inner(space):
            yield from oddities(leaf, obs[key], f"{part}[{key!r}]")
        return
    array = np.asarray(obs)
    if _is_whole(space) and array.dtype.kind == "f":
        yield f"dtype{part}", f"{part} of {array.dtype}, the space {space} holds {space.dtype}"
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        # Further outside than the space is wide: the bounds are wrong, or the value is.
        width = np.maximum(1.0, np.where(np.isfinite(high - low), high - low, 1.0))
        outside = (array < low - width) | (array > high + width)
        if outside.any():
            at = tuple(np.argwhere(outside)[0].tolist())
            yield (
                f"range{part}",
                f"{part} with {_first(array, outside)}, far outside the {low[at]:g} … {high[at]:g} of its space: "
                "correct the bounds or scale the observation (policy.normalize_obs=true does, too)",
            )


def as_array(value: Any) -> np.ndarray | None:
    """The value as numpy reads it; None for what it cannot (lists of unequal lengths, for instance)."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return None


def amount(value: Any) -> str:
    """How many values were given."""
    if isinstance(value, tuple):
        return f"{len(value)} values"
    if value is None:
        return "nothing"
    return f"one {type(value).__name__}"


def short(value: Any) -> str:
    """The value in few letters."""
    text = repr(value)
    if len(text) <= 60:
        return text
    return f"{text[:57]}…"


def _leaf_misfit(space: spaces.Space, obs: Any) -> str | None:
    array = as_array(obs)
    if array is None or array.dtype.kind not in NUMBERS:
        return f"= {short(obs)} that is no array of numbers, the space is {space}"
    shape = tuple(space.shape or ())
    if array.shape != shape:
        return f"of shape {array.shape}, the space {space} has {shape}"
    if not _is_whole(space):
        return None
    between = array != np.rint(array)
    if between.any():
        return f"of {array.dtype} with {_first(array, between)}, the space {space} holds whole numbers only"
    low, high = _possible(space)
    outside = (array < low) | (array > high)
    if outside.any():
        return f"with {_first(array, outside)}, outside {space}"
    return None


def _is_whole(space: spaces.Space) -> bool:
    return np.dtype(space.dtype).kind in "iu"


def _possible(space: spaces.Space) -> tuple[Any, Any]:
    """Lowest and highest value: of the choices there are, or that the type of a Box can hold."""
    if isinstance(space, spaces.Discrete):
        return space.start, space.start + space.n - 1
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, spaces.MultiBinary):
        return 0, 1
    held = np.iinfo(np.dtype(space.dtype).type)
    return held.min, held.max


def _first(array: np.ndarray, wrong: np.ndarray) -> str:
    """The first wrong value and where it is."""
    where = np.argwhere(wrong)[0].tolist()
    value = f"{array[tuple(where)]:g}"
    if where:
        return f"{value} at index {where}"
    return value


def _inner(space: spaces.Dict | spaces.Tuple) -> Any:
    if isinstance(space, spaces.Dict):
        return space.spaces.items()
    return enumerate(space.spaces)


def _names(keys: Any) -> str:
    return ", ".join(repr(key) for key in keys) or "none"
