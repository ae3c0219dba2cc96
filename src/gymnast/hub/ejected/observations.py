"""How the script turns an env's observation into what the rollout stores: flat floats, or whole numbers for tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from gymnasium import spaces

from gymnast.hub.ejected.facts import Facts
from gymnast.hub.ejected.template import LINE, literal
from gymnast.policies.encoders import flat_size


@dataclass(frozen=True)
class Layout:
    """Observations as the script stores them."""

    size: int
    """Inputs of the first layer."""
    shape: str
    """Source of the shape after the step axis."""
    dtype: str
    encode: str = ""
    """Body of the script's `encode`; empty if the env's own observation is stored as it is."""
    says: str = ""
    columns: tuple[int, ...] = ()
    """First column of each component, for several whole numbers; alone in `index`, for one."""
    index: bool = False
    skipped: tuple[tuple[int, int], ...] = ()
    """Ranges of inputs that are not normalised: images and flags arrive in a fixed range already."""


def layout(facts: Facts) -> Layout:
    """Read off the spaces."""
    raw, space = facts.raw_space, facts.space
    size = flat_size(space)
    if isinstance(space, spaces.Discrete):
        start = int(getattr(raw, "start", 0))
        body = f"return np.asarray(obs) - {start}" if start else ""
        return Layout(size, "N_ENVS", "np.int64", body, f"The state, counted from 0 instead of {start}.", index=True)
    if isinstance(space, spaces.MultiDiscrete):
        sizes, starts = [int(n) for n in space.nvec], _starts(raw)
        body = ""
        if any(starts):
            body = f"return np.asarray(obs) - np.array({literal(starts)})"
        columns = (0, *accumulate(sizes[:-1]))
        says = "The numbers, each counted from 0."
        return Layout(size, f"N_ENVS, {len(sizes)}", "np.int64", body, says, columns, index=True)
    shape, dtype = "N_ENVS, N_INPUTS", "np.float32"
    names = [wrapper.id for wrapper in facts.config.env.wrappers]
    if "one_hot" in names:
        parts = [_one_hot("obs", n, start, i) for i, n, start in _numbers(raw)]
        return Layout(size, shape, dtype, _joined(parts), "A one-hot vector.")
    if "array" in names:
        numbers = _numbers(raw)
        starts = [start for _, _, start in numbers]
        counted = "np.atleast_1d(obs)"
        if any(starts):
            counted = f"(np.atleast_1d(obs) - np.array({literal(starts)}))"
        scale = ", ".join(f"1 / {max(n - 1, 1)}" for _, n, _ in numbers)
        body = f"return {counted} * np.array([{scale}], np.float32)"
        return Layout(size, shape, dtype, body, "Numbers scaled to 0..1.")
    if isinstance(space, spaces.Dict):
        assert isinstance(raw, spaces.Dict)
        parts = [part for key in space.spaces for part in _parts(f"obs[{literal(key)}]", raw[key])]
        return Layout(size, shape, dtype, _joined(parts), "The parts side by side.", skipped=_skipped(space))
    plain = isinstance(space, spaces.Box) and len(space.shape) == 1 and space.dtype != np.uint8
    body = ""
    if not plain:
        body = f"return {_parts('obs', raw)[0]}"
    return Layout(size, shape, dtype, body, "The observation as one flat vector.", skipped=_skipped(space))


def _starts(space: spaces.Space) -> list[int]:
    parts = None
    if isinstance(space, spaces.Tuple):
        parts = space.spaces
    if parts is not None:
        return [int(part.start) for part in parts]  # type: ignore[attr-defined]
    return [int(start) for start in np.ravel(space.start)]  # type: ignore[attr-defined]


def _numbers(space: spaces.Space) -> list[tuple[int | None, int, int]]:
    """(index in the observation, size, start) of each whole number in a Discrete, MultiDiscrete or Tuple observation."""
    if isinstance(space, spaces.Discrete):
        return [(None, int(space.n), int(space.start))]
    if isinstance(space, spaces.Tuple):
        sizes = [int(part.n) for part in space.spaces]  # type: ignore[attr-defined]
    else:
        sizes = [int(n) for n in np.ravel(space.nvec)]  # type: ignore[attr-defined]
    return [(i, n, start) for i, (n, start) in enumerate(zip(sizes, _starts(space), strict=True))]


def _one_hot(source: str, n: int, start: int, index: int | None = None) -> str:
    if index is None:
        number = source
    else:
        number = f"{source}[{index}]"
    return f"np.eye({n}, dtype=np.float32)[{number}{f' - {start}' if start else ''}]"


def _parts(source: str, space: spaces.Space) -> list[str]:
    """Source of the flat float vectors that one part of an observation becomes."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.Tuple)):
        return [_one_hot(source, n, start, i) for i, n, start in _numbers(space)]
    flat = f"np.asarray({source}, np.float32).ravel()"
    return [f"{flat} / np.float32(255.0)" if space.dtype == np.uint8 and isinstance(space, spaces.Box) else flat]


def _joined(parts: list[str]) -> str:
    if len(parts) == 1:
        return f"return {parts[0]}"
    line = f"return np.concatenate(({', '.join(parts)}))"
    if len(line) + 4 <= LINE:
        return line
    return "parts = (\n" + "".join(f"    {part},\n" for part in parts) + ")\nreturn np.concatenate(parts)"


def _skipped(space: spaces.Space) -> tuple[tuple[int, int], ...]:
    ranges, start = [], 0
    for part in space.spaces.values() if isinstance(space, spaces.Dict) else [space]:
        end = start + flat_size(part)
        if not isinstance(part, spaces.Box) or part.dtype == np.uint8:
            ranges.append((start, end))
        start = end
    return tuple(ranges)
