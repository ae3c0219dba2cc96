"""Gymnasium (and old gym) spaces out of pickle nodes, and whether an env's spaces fit them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.errors import CheckpointError
from gymnast.hub.arrays import array, number
from gymnast.hub.nodes import Node, attributes, describe, mapping
from gymnast.policies.convolution import image_shape

Attributes = dict[str, Any]


def space(value: Any, where: str, *, inside: bool = False) -> spaces.Space:
    """The space a node describes; Dicts one level deep, as Stable-Baselines3 has them."""
    known = isinstance(value, Node) and value.module.split(".")[0] in ("gym", "gymnasium")
    make = _KINDS.get(value.name) if known else None
    if make is None or (inside and make is _dict):
        raise CheckpointError(
            f"{where} has a space of kind {describe(value)}{' inside a Dict' if inside else ''}, which is not supported: "
            f"expected {', '.join(_KINDS)}."
        )
    try:
        return make(attributes(value, where, "a space"), where)
    except (AssertionError, ValueError, TypeError, KeyError, OverflowError):
        raise CheckpointError(f"{where} is damaged: its {value.name} space makes no sense.") from None


def _box(saved: Attributes, where: str) -> spaces.Space:
    low, high = array(saved["low"], where), array(saved["high"], where)
    return spaces.Box(low, high, dtype=low.dtype.type)


def _discrete(saved: Attributes, where: str) -> spaces.Space:
    return spaces.Discrete(int(number(saved["n"], where)), start=int(number(saved.get("start", 0), where)))


def _multi_discrete(saved: Attributes, where: str) -> spaces.Space:
    start = None
    if saved.get("start") is not None:
        start = array(saved["start"], where)
    return spaces.MultiDiscrete(array(saved["nvec"], where), start=start)


def _multi_binary(saved: Attributes, where: str) -> spaces.Space:
    n = saved["n"]
    return spaces.MultiBinary([int(number(k, where)) for k in n] if isinstance(n, tuple) else int(number(n, where)))


def _dict(saved: Attributes, where: str) -> spaces.Space:
    parts = mapping(saved["spaces"], where)
    # As a list of pairs: a mapping would be sorted, and the order is that of the network's inputs.
    return spaces.Dict([(str(key), space(part, where, inside=True)) for key, part in parts.items()])


_KINDS: dict[str, Callable[[Attributes, str], spaces.Space]] = {
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": _multi_binary,
    "Dict": _dict,
}


def parts_of(space: spaces.Space) -> dict[str | None, spaces.Space]:
    """The parts of a Dict by key, or the space itself under None."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces.items())
    return {None: space}


# ---- does it fit the env? ------------------------------------------------------------------------------------------


def same_observations(saved: spaces.Space, real: spaces.Space, images: Collection[str | None] = ()) -> bool:
    """Whether observations of `real` mean the same to a policy made for `saved`, which reads the parts `images` by a CNN.

    Bounds of Box observations may differ: no policy reads them, and they changed between versions of gym. Images are saved
    with their channels first and stacked frames as channels, however the env has them.
    """
    if isinstance(saved, spaces.Dict) and isinstance(real, spaces.Dict):
        return set(saved.spaces) == set(real.spaces) and all(
            same_observations(saved[key], real[key], (None,) if key in images else ()) for key in real.spaces
        )
    if isinstance(saved, spaces.Box) and isinstance(real, spaces.Box):
        return _same_shape(saved.shape, real.shape, image=None in images) and (
            (saved.dtype == np.uint8) == (real.dtype == np.uint8)
        )
    return saved == real


def _same_shape(saved: tuple[int, ...], real: tuple[int, ...], *, image: bool) -> bool:
    return saved == real or (image and len(real) in (3, 4) and saved == image_shape(real))


def same_actions(saved: spaces.Space, real: spaces.Space) -> bool:
    """Whether actions for `saved` can be given to `real`. Bounds count: actions are clipped to them."""
    if isinstance(saved, spaces.Box) and isinstance(real, spaces.Box):
        return saved.shape == real.shape and np.allclose(saved.low, real.low) and np.allclose(saved.high, real.high)
    return saved == real


def counts_from_zero(space: spaces.Space) -> bool:
    """Whether Discrete parts start at 0: Stable-Baselines3 knows no other start."""
    if isinstance(space, spaces.Dict):
        return all(counts_from_zero(part) for part in space.spaces.values())
    return not np.any(getattr(space, "start", 0))
