"""How much every env slot plays in an evaluation, fixed before anything is played, so that no slot's luck decides it."""

from __future__ import annotations

import numpy as np


def quotas(amount: int, n_envs: int) -> np.ndarray:
    """Share of each slot."""
    share, rest = divmod(amount, n_envs)
    return np.array([share + (i < rest) for i in range(n_envs)])


class Quota:
    """So many whole episodes per slot, or so many steps per slot and its last episode to the end."""

    def __init__(self, n_envs: int, episodes: int, steps: int | None = None) -> None:
        self._in_steps = steps is not None
        self.left = quotas(episodes if steps is None else steps, n_envs)
        self.played = 0
        """Episodes or steps, whichever is counted."""

    def take(self, index: int, length: int) -> bool:
        """An episode of this length has ended in a slot; whether it counts."""
        if self.left[index] <= 0:
            return False
        amount = length if self._in_steps else 1
        self.left[index] -= amount
        self.played += amount
        return True

    def rests(self, index: int) -> bool:
        """Whether a slot has played all it has to."""
        return bool(self.left[index] <= 0)

    @property
    def open(self) -> np.ndarray:
        """The slots that still play."""
        return self.left > 0
