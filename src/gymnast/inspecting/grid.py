"""A policy on the map of a grid world: its value and its choice in every cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

from gymnast.evaluation.evaluate import tensors
from gymnast.policies.base import Policy
from gymnast.policies.distributions import Categorical

CLIFF = (4, 12)
"""Rows and columns of CliffWalking, which has no description of its map."""


@dataclass(frozen=True)
class Cell:
    """One place of the map."""

    letter: str
    """As the env's own map has it: S, F, H, G; C is the cliff."""
    state: int
    value: float | None
    """In the learner's reward scale; None without a critic."""
    probabilities: tuple[float, ...]
    """Of each action."""


@dataclass(frozen=True)
class GridMap:
    """All places, row by row."""

    rows: tuple[tuple[Cell, ...], ...]
    arrows: tuple[str, ...]
    """Each action as an arrow."""
    editable: bool
    """Whether the env takes another map as `env.kwargs.desc`."""


ARROWS = {"FrozenLake": ("←", "↓", "→", "↑"), "CliffWalking": ("↑", "→", "↓", "←")}


def grid_map(policy: Policy, env: gym.Env[Any, Any]) -> GridMap | None:
    """The map of FrozenLake or CliffWalking with what the policy makes of it; None for all other envs."""
    bare: Any = env.unwrapped
    kind = next((name for name in ARROWS if type(bare).__name__.startswith(name)), None)
    space = policy.encoder.space
    if kind is None or not isinstance(space, spaces.Discrete) or not isinstance(policy.distribution, Categorical):
        return None
    letters = _letters(bare)
    count = len(letters) * len(letters[0])
    if count != space.n:
        return None
    values, probabilities = _everywhere(policy, count)
    columns = len(letters[0])
    rows = tuple(
        tuple(
            Cell(letter, state, values[state], tuple(probabilities[state]))
            for state, letter in enumerate(line, start=row * columns)
        )
        for row, line in enumerate(letters)
    )
    return GridMap(rows, ARROWS[kind], editable=kind == "FrozenLake")


def _letters(bare: Any) -> list[str]:
    desc = getattr(bare, "desc", None)
    if desc is not None:
        return ["".join(letter.decode() for letter in line) for line in np.asarray(desc, dtype="S1")]
    height, width = CLIFF
    last = "S" + "C" * (width - 2) + "G"
    return ["F" * width] * (height - 1) + [last]


def _everywhere(policy: Policy, count: int) -> tuple[list[float | None], list[list[float]]]:
    obs = tensors(np.arange(count, dtype=np.int64))
    with torch.inference_mode():
        values: list[float | None] = [None] * count
        if policy.has_critic:
            values = policy.values(obs).tolist()
        params = policy.act(obs, None)["params"]
    return values, torch.softmax(params, -1).tolist()
