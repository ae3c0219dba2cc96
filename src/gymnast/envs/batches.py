"""One observation, or several of them in whichever way people keep them, as a list of single ones."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from gymnast.envs.conformity import misfit
from gymnast.errors import UsageError


def one_or_several(obs: Any, space: spaces.Space) -> tuple[list[Any], bool]:
    """Single observations of `space`, and whether `obs` is just one; an error that names the right shape for anything else."""
    problem = misfit(space, obs)
    if problem is None:
        return [obs], True
    try:
        rows = _rows(obs, space)
    except (TypeError, KeyError, ValueError, IndexError):  # nothing to take rows from, or parts of unequal lengths
        raise UsageError(_sentence(problem, space)) from None
    for i, row in enumerate(rows):
        wrong = misfit(space, row)
        if wrong is None:
            continue
        if i == 0:  # no batch at all
            raise UsageError(_sentence(problem, space))
        raise UsageError(f"Row {i} of the batch is an observation{wrong}. {_expected(space)}")
    return rows, False


def _sentence(problem: str, space: spaces.Space) -> str:
    return f"This is neither an observation nor a batch of them: an observation{problem}. {_expected(space)}"


def _expected(space: spaces.Space) -> str:
    if isinstance(space, spaces.Dict):
        return "Give a dict with one value per key, or a batch of values per key."
    if isinstance(space, spaces.Tuple):
        return "Give a tuple with one value per part, or a list of such tuples."
    shape = tuple(space.shape or ())
    batch = "(n,)"
    if shape:
        batch = f"(n, {', '.join(map(str, shape))})"
    return f"Give an array of shape {shape}, or a batch of shape {batch}."


def _rows(obs: Any, space: spaces.Space) -> list[Any]:
    """Single observations of a batch: a list of them, or batched part by part as Gymnasium's vector envs do."""
    if isinstance(obs, list):
        return obs
    if isinstance(space, spaces.Dict):
        parts = [_rows(obs[key], part) for key, part in space.spaces.items()]
        return [dict(zip(space.spaces, row, strict=True)) for row in zip(*parts, strict=True)]
    if isinstance(space, spaces.Tuple) and isinstance(obs, tuple):
        if len(obs) and isinstance(obs[0], tuple) and not isinstance(space.spaces[0], spaces.Tuple):
            return list(obs)  # a tuple of single observations
        return list(zip(*(_rows(part, inner) for part, inner in zip(obs, space.spaces, strict=True)), strict=True))
    return list(obs)
