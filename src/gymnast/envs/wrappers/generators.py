"""Generators of wrappers: one per slot, from the slot's own seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

WRAPPERS = 0x77726170
"""Keeps the streams of wrappers apart from the env's, which is seeded with the bare number."""


def seeded(seed: int, place: int) -> np.random.Generator:
    """The generator of the `place`-th random wrapper around the env with this seed."""
    return np.random.default_rng([seed, WRAPPERS, place])


class SlotGenerators:
    """One generator per slot, for a wrapper of the whole batch."""

    def __init__(self, n_envs: int, place: int) -> None:
        self.place = place
        self.each = [np.random.default_rng() for _ in range(n_envs)]

    def seed(self, seeds: Sequence[int]) -> None:
        """Restart every slot's generator."""
        self.each = [seeded(seed, self.place) for seed in seeds]

    def save(self) -> list[dict[str, Any]]:
        """The state of every slot's generator."""
        return [dict(generator.bit_generator.state) for generator in self.each]

    def load(self, states: list[dict[str, Any]]) -> None:
        """Restore the states that `save` returned."""
        for generator, state in zip(self.each, states, strict=True):
            generator.bit_generator.state = state
