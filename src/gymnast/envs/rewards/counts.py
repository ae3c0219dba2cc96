"""A bonus for states that an env copy has seldom been in (Strehl and Littman 2008, over equal parts of the ranges)."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.config.expressions import identifier
from gymnast.envs.rewards.steps import Layout, Steps
from gymnast.envs.rewards.terms import Term
from gymnast.errors import ConfigError


class CountBonus(Term):
    """Pays 1/√n in a state that the copy is in for the n-th time.

    Copies do not share their counts, so the reward does not depend on how many workers step them.
    """

    def __init__(self, layout: Layout, name: str, n_envs: int, components: list[str], bins: int) -> None:
        self._bins = bins
        self._places = [self._place(layout, name, one) for one in components or list(layout.components)]
        if not self._places:
            raise ConfigError(
                f"env.rewards.terms.{name}: count_bonus needs the names of components, and those of this env have none."
            )
        self._low, self._high = self._bounds(layout, name, components or list(layout.components))
        self._counts: list[dict[int, int]] = [{} for _ in range(n_envs)]

    def _place(self, layout: Layout, name: str, component: str) -> tuple[str, int]:
        try:
            return layout.place(identifier(component), None)
        except ConfigError as error:
            raise ConfigError(f"env.rewards.terms.{name}: {error}") from None

    def _bounds(self, layout: Layout, name: str, components: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ranges of the spec card, which are tighter than those of the space where that has none."""
        low, high = [], []
        for (part, place), component in zip(self._places, components, strict=True):
            known = layout.component(identifier(component))
            bounds: tuple[float | None, float | None] = (None, None)
            if known is not None:
                bounds = (known.low, known.high)
            space = layout.observation_space
            if isinstance(space, spaces.Dict):
                space = space.spaces[part]
            if None in bounds and isinstance(space, spaces.Box):
                bounds = (float(space.low.reshape(-1)[place]), float(space.high.reshape(-1)[place]))
            if not all(bound is not None and np.isfinite(bound) for bound in bounds):
                raise ConfigError(
                    f"env.rewards.terms.{name}: '{component}' has no bounds, so its range cannot be cut into parts. "
                    "Give the names of components that have: components: [...]."
                )
            low.append(bounds[0])
            high.append(bounds[1])
        return np.array(low, np.float64), np.array(high, np.float64)

    def pay(self, steps: Steps) -> np.ndarray:
        """Count the states that the steps led to."""
        cells = self._cells(steps)
        paid = np.empty(len(cells))
        for slot, (cell, counts) in enumerate(zip(cells.tolist(), self._counts, strict=True)):
            counts[cell] = count = counts.get(cell, 0) + 1
            paid[slot] = count**-0.5
        return paid

    def _cells(self, steps: Steps) -> np.ndarray:
        """The number of each copy's state."""
        cells = np.zeros(len(steps.reward), np.int64)
        for (part, place), low, high in zip(self._places, self._low, self._high, strict=True):
            share = (steps.after.numbers(part, place) - low) / (high - low)
            cells *= self._bins
            cells += np.clip(share * self._bins, 0, self._bins - 1).astype(np.int64)
        return cells

    def reset(self) -> None:
        """Nothing has been seen."""
        self._counts = [{} for _ in self._counts]

    def save(self, slot: int) -> Any:
        """The states that were seen, and how often."""
        counts = self._counts[slot]
        return {"cells": np.array(list(counts), np.int64), "counts": np.array(list(counts.values()), np.int64)}

    def load(self, slot: int, state: Any) -> None:
        """Continue to count."""
        self._counts[slot] = dict(zip(state["cells"].tolist(), state["counts"].tolist(), strict=True))
