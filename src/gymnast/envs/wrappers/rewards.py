"""Wrappers of the reward the learner sees; reported rewards and returns stay the env's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.vector import VectorWrapper


class RewardWrapper(VectorWrapper):
    """Base of wrappers that change rewards: the innermost one keeps what the env itself paid."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        self._innermost = not inner.changes_reward
        self.changes_reward = True

    @abstractmethod
    def change(self, reward: np.ndarray) -> None:
        """Change rewards [N] where they lie."""

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Change them after the step."""
        ended = self.inner.recv(row)
        if self._innermost and row.own_reward is not None:
            row.own_reward[...] = row.reward
        self.change(row.reward)
        return ended


class RewardClip(RewardWrapper):
    """Clips every reward into a range."""

    def __init__(self, inner: VectorEnv, low: float = -1.0, high: float = 1.0) -> None:
        super().__init__(inner)
        self._low, self._high = low, high

    def change(self, reward: np.ndarray) -> None:
        """Clip the rewards in place."""
        np.clip(reward, self._low, self._high, out=reward)


class RewardScale(RewardWrapper):
    """Multiplies, and adds an offset."""

    def __init__(self, inner: VectorEnv, factor: float, offset: float = 0.0) -> None:
        super().__init__(inner)
        self._factor, self._offset = np.float32(factor), np.float32(offset)

    def change(self, reward: np.ndarray) -> None:
        """Scale the rewards in place, then shift them."""
        reward *= self._factor
        reward += self._offset
