"""Wrappers of the reward the learner sees; reported returns stay the env's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.vector import VectorWrapper


class RewardClip(VectorWrapper):
    """Clips to bounds."""

    def __init__(self, inner: VectorEnv, low: float = -1.0, high: float = 1.0) -> None:
        super().__init__(inner)
        self._low, self._high = low, high

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Clip after the step."""
        ended = self.inner.recv(row)
        np.clip(row.reward, self._low, self._high, out=row.reward)
        return ended


class RewardScale(VectorWrapper):
    """Multiplies, and adds an offset."""

    def __init__(self, inner: VectorEnv, factor: float, offset: float = 0.0) -> None:
        super().__init__(inner)
        self._factor, self._offset = np.float32(factor), np.float32(offset)

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Scale after the step."""
        ended = self.inner.recv(row)
        row.reward *= self._factor
        row.reward += self._offset
        return ended
