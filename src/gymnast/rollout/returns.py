"""Returns and advantages: pure functions on [T, N] arrays, termination and truncation as separate inputs.

A terminated step has no future: nothing is bootstrapped. A truncated one has a future we did not see: it is bootstrapped
from the value of its own final observation. Both cut the λ-trace, because the next row belongs to another episode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Steps:
    """What [T, N] steps paid, what the critic said of them, and where they ended."""

    reward: Floats
    value: Floats
    next_value: Floats
    """Of the state each step led to; of the final observation where an episode was cut off."""
    terminated: Flags
    truncated: Flags

    @property
    def ended(self) -> Flags:
        """Where nothing of the next row follows."""
        return self.terminated | self.truncated


def gae(
    reward: Floats,
    value: Floats,
    next_value: Floats,
    terminated: Flags,
    truncated: Flags,
    gamma: float,
    lam: float,
) -> tuple[Floats, Floats]:
    """Generalised advantages (Schulman et al. 2016) and value targets, both [T, N].

    `next_value[t]` is the value of the state that step t led to (of the final observation where an episode was cut off).
    """
    advantage = reward - value + np.float32(gamma) * next_value * ~terminated
    carry = np.float32(gamma * lam) * ~(terminated | truncated)
    for t in range(len(advantage) - 2, -1, -1):
        advantage[t] += carry[t] * advantage[t + 1]
    return advantage, advantage + value


def discounted_returns(reward: Floats, ended: Flags, gamma: float) -> Floats:
    """Monte-Carlo returns [T, N] of each step to the end of its episode; the tail after the last end counts from zero."""
    returns = reward.copy()
    carry = np.float32(gamma) * ~ended
    for t in range(len(returns) - 2, -1, -1):
        returns[t] += carry[t] * returns[t + 1]
    return returns


class RewardScaler:
    """Divides rewards by the running std of the discounted reward sum; no mean is subtracted, the sign is kept.

    Statistics are exact over all sums seen so far. Raw returns are reported elsewhere, always.
    """

    def __init__(self, n_envs: int, clip: float) -> None:
        self.clip = clip
        self._sums = np.zeros(n_envs, np.float64)
        self._mean, self._m2, self._count = 0.0, 0.0, 0.0

    @property
    def std(self) -> float:
        """What rewards are divided by at present."""
        if self._count:
            return float(np.sqrt(self._m2 / self._count + 1e-8))
        return 1.0

    def start_episodes(self) -> None:
        """Every env begins a new episode with the next rollout."""
        self._sums = np.zeros_like(self._sums)

    def __call__(self, reward: Floats, ended: Flags, gamma: float) -> Floats:
        """Take in one rollout [T, N] and return its scaled rewards."""
        sums = np.empty(reward.shape, np.float64)
        current = self._sums
        for t in range(len(reward)):
            current = current * gamma + reward[t]
            sums[t] = current
            current = current * ~ended[t]
        self._sums = current
        self._merge(sums)
        return self.scaled(reward)

    def scaled(self, reward: Floats) -> Floats:
        """Rewards by the statistics so far, which stay as they are."""
        scaled: Floats = np.clip(reward / np.float32(self.std), -self.clip, self.clip)
        return scaled

    def _merge(self, x: NDArray[np.float64]) -> None:
        n, mean = float(x.size), float(x.mean())
        total, delta = self._count + n, mean - self._mean
        self._m2 += float(((x - mean) ** 2).sum()) + delta * delta * self._count * n / total
        self._mean += delta * n / total
        self._count = total

    def state(self) -> dict[str, object]:
        """Running sums and moments, for the checkpoint."""
        return {"sums": self._sums.copy(), "mean": self._mean, "m2": self._m2, "count": self._count}

    def load_state(self, state: dict[str, object]) -> None:
        """Restore what `state` returned, to the bit."""
        self._sums = np.array(state["sums"], np.float64)
        self._mean, self._m2, self._count = (float(state[k]) for k in ("mean", "m2", "count"))  # type: ignore[arg-type]
