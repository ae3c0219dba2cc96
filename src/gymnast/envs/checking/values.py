"""Whether single values are what the spaces and Gymnasium's signature promise."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.checking.source import Place
from gymnast.envs.checking.subject import Subject
from gymnast.envs.spaces import n_masked_actions

ROUNDING = 1e-5
"""Bounds are declared in float32 and may be missed by the last digit."""


def check_observation(subject: Subject, space: spaces.Space, obs: Any, source: str, place: Place | None) -> None:
    """Type, shape, dtype, finiteness and range, part by part; the first mismatch is reported."""
    problem = _mismatch(space, obs, "")
    if problem is not None:
        kind, what = problem
        subject.add(kind, f"{source} returned {what}.", place)


def _mismatch(space: spaces.Space, obs: Any, name: str) -> tuple[str, str] | None:
    part = f"an observation['{name}']" if name else "an observation"
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, dict):
            return "obs-type", f"{part} of type {type(obs).__name__}, observation_space is a Dict"
        if set(obs) != set(space.spaces):
            return "obs-type", f"{part} with the keys {_names(obs)}, observation_space has {_names(space.spaces)}"
        inner = [(_join(name, key), space.spaces[key], obs[key]) for key in space.spaces]
    elif isinstance(space, spaces.Tuple):
        if not isinstance(obs, tuple) or len(obs) != len(space.spaces):
            return "obs-type", f"{part} that is no tuple of {len(space.spaces)}, as observation_space says"
        inner = [(_join(name, i), space.spaces[i], item) for i, item in enumerate(obs)]
    else:
        return _leaf_mismatch(space, obs, part)
    return next((found for key, leaf, item in inner if (found := _mismatch(leaf, item, key)) is not None), None)


def _leaf_mismatch(space: spaces.Space, obs: Any, part: str) -> tuple[str, str] | None:
    if isinstance(space, spaces.Discrete):
        if not (
            isinstance(obs, (int, np.integer))
            or (isinstance(obs, np.ndarray) and obs.shape == () and obs.dtype.kind in "iu")
        ):
            return "obs-type", f"{part} of type {type(obs).__name__}, observation_space wants a whole number"
        if space.contains(obs):
            return None
        return ("obs-range", f"{part} of {obs}, outside {space}")
    if not isinstance(obs, np.ndarray):
        return "obs-type", f"{part} of type {type(obs).__name__}, observation_space wants an array"
    if obs.shape != space.shape:
        return "obs-shape", f"{part} of shape {obs.shape}, observation_space has {space.shape}"
    if space.dtype is not None and not np.can_cast(obs.dtype, space.dtype):
        return "obs-dtype", f"{part} of {obs.dtype}, observation_space has {space.dtype}"
    if obs.dtype.kind == "f" and not np.isfinite(obs).all():
        where = np.argwhere(~np.isfinite(obs))[0].tolist()
        return "obs-nan", f"{part} with {obs[tuple(where)]} at index {where}"
    return _out_of_range(space, obs, part)


def _out_of_range(space: spaces.Space, obs: np.ndarray, part: str) -> tuple[str, str] | None:
    if not isinstance(space, spaces.Box):
        if space.contains(obs):
            return None
        return ("obs-range", f"{part} of {obs.tolist()}, outside {space}")
    slack = ROUNDING * np.maximum(1, np.abs(np.where(np.isfinite(space.low), space.low, 0)))
    outside = (obs < space.low - slack) | (obs > space.high + slack)
    if not outside.any():
        return None
    where = tuple(np.argwhere(outside)[0].tolist())
    bounds = f"{space.low[where]:g} … {space.high[where]:g}"
    return "obs-range", f"{part} with {obs[where]:g} at index {list(where)}, observation_space allows {bounds}"


def check_outcome(subject: Subject, outcome: tuple[Any, ...], place: Place | None) -> None:
    """Reward, terminated, truncated and info of a step."""
    _, reward, terminated, truncated, info = outcome
    is_number = isinstance(reward, (int, float, np.integer, np.floating)) and not isinstance(reward, np.ndarray)
    if not is_number:
        shape = f" of shape {reward.shape}" if isinstance(reward, np.ndarray) else ""
        subject.add("reward-type", f"step returned a reward of type {type(reward).__name__}{shape}.", place)
    elif not np.isfinite(reward):
        subject.add("reward-nan", f"step returned a reward of {float(reward)}.", place)
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, (bool, np.bool_)):
            subject.add(
                f"{name}-type", f"step returned {name} = {flag!r}, a {type(flag).__name__} instead of a bool.", place
            )
    check_info(subject, info, "step", place)


def check_info(subject: Subject, info: Any, source: str, place: Place | None) -> None:
    """A dict, and an action mask in it wherever there was one at the start."""
    if not isinstance(info, dict):
        subject.add("info-type", f"{source} returned an info of type {type(info).__name__}.", place)
    elif subject.has_mask and "action_mask" not in info:
        subject.add("mask-missing", f"{source} returned no action_mask in its info, the first reset did.", place)


def check_mask(subject: Subject, space: spaces.Space, info: dict[str, Any], source: str, place: Place | None) -> None:
    """One entry per action, and at least one of them possible."""
    n_actions = n_masked_actions(space)
    if n_actions is None or "action_mask" not in info:
        return
    size = np.size(info["action_mask"])
    if size != n_actions:
        subject.add("mask-shape", f"{source} returned an action_mask of {size} entries for {n_actions} actions.", place)
    elif not np.any(info["action_mask"]):
        subject.add("mask-empty", f"{source} returned an action_mask that allows nothing.", place)


def _names(keys: Any) -> str:
    return ", ".join(sorted(map(str, keys))) or "none"


def _join(name: str, key: Any) -> str:
    if name:
        return f"{name}.{key}"
    return str(key)
