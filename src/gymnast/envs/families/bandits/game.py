"""The bandits themselves: N of them at once in arrays, each with a generator of its own.

The single env is the case N = 1 of the vector form, and every operation works on each slot by itself: choosing the faster
form changes no bit of a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gymnast.envs.families.bandits.rules import Rules

STATE = ("means", "context", "pulls", "counts", "sums", "regret", "last_arm", "last_reward", "total")
"""Arrays that, with the generators, are the whole state."""


class Game:
    """N bandits. `A` arms, `D` numbers in a context."""

    def __init__(self, rules: Rules, n: int) -> None:
        self.rules = rules
        self.generators: list[np.random.Generator] = []
        arms = (n, rules.arms)
        self.means = np.zeros(arms)
        self.context = np.zeros((n, rules.context))
        self.pulls = np.zeros(arms, np.int64)
        self.counts = np.zeros(arms)
        """Pulls with the old ones faded; `sums` are the rewards, faded alike."""
        self.sums = np.zeros(arms)
        self.regret = np.zeros(n)
        """Expected reward given away in this episode: best mean − mean of the arm pulled, summed."""
        self.last_arm = np.full(n, -1)
        self.last_reward = np.zeros(n)
        self.total = np.zeros(n)
        """Return of the episode."""
        self.best_arm = np.zeros(n, np.int64)
        """The best arm when the last one was pulled; `best_mean` is its mean."""
        self.best_mean = np.zeros(n)
        self._slots = np.arange(n)
        self._luck = np.zeros(n)

    def start(self, i: int) -> None:
        """A new episode in slot i."""
        rules, generator = self.rules, self.generators[i]
        for array in (self.pulls, self.counts, self.sums, self.regret, self.last_reward, self.total):
            array[i] = 0
        self.last_arm[i] = -1
        if rules.context:
            self._new_contexts([i])
        elif rules.means is not None:
            self.means[i] = rules.means
        elif rules.bounded:
            self.means[i] = generator.random(rules.arms)
        else:
            self.means[i] = generator.standard_normal(rules.arms)
        self.best_arm[i], self.best_mean[i] = self.means[i].argmax(), self.means[i].max()

    def _new_contexts(self, slots: list[int]) -> None:
        # Sums are written out number by number: a matrix product may round differently for one slot and for many.
        size, directions = self.rules.context, self.rules.directions
        points = np.array([self.generators[i].standard_normal(size) for i in slots])
        points /= np.sqrt(sum(np.square(points[:, d]) for d in range(size)))[:, None]
        self.context[slots] = points
        self.means[slots] = (sum(points[:, d, None] * directions[:, d] for d in range(size)) + 1.0) / 2.0

    def pull(self, arms: np.ndarray) -> np.ndarray:
        """Pull one arm `[N]` in every slot; the rewards `[N]`. Then the world moves on: means drift, contexts are new."""
        rules, slots, luck = self.rules, self._slots, self._luck
        mean = self.means[slots, arms]
        if rules.bounded:
            luck[:] = [generator.random() for generator in self.generators]
            reward: np.ndarray = (luck < mean).astype(np.float64)
        else:
            luck[:] = [generator.standard_normal() for generator in self.generators]
            reward = luck * rules.noise + mean
        self.best_arm[:] = self.means.argmax(1)
        self.best_mean[:] = self.means[slots, self.best_arm]
        self.regret += self.best_mean - mean
        self.total += reward
        if rules.memory < 1:
            self.counts *= rules.memory
            self.sums *= rules.memory
        self.pulls[slots, arms] += 1
        self.counts[slots, arms] += 1.0
        self.sums[slots, arms] += reward
        self.last_arm[:], self.last_reward[:] = arms, reward
        if rules.drift:
            self._drift()
        if rules.context:
            self._new_contexts(slots.tolist())
        return reward

    def _drift(self) -> None:
        steps = np.array([generator.standard_normal(self.rules.arms) for generator in self.generators])
        self.means += steps * self.rules.drift
        if self.rules.bounded:
            np.abs(self.means, out=self.means)
            self.means[...] = 1.0 - np.abs(1.0 - self.means)
            np.clip(self.means, 0.0, 1.0, out=self.means)  # a drift so large that one reflection is not enough

    def observe(self, out: np.ndarray) -> None:
        """Write what the player sees: `[N]` zeros, `[N, D]` contexts, `[N, A + 1]` last pull or `[N, A, 2]` statistics."""
        rules = self.rules
        if rules.context:
            out[...] = self.context
        elif rules.observe == "statistics":
            # For bernoulli arms the mean of the posterior under Jeffreys' prior, and a width that shrinks like its own.
            out[..., 0] = (self.sums + rules.prior) / (self.counts + 1.0)
            out[..., 1] = 1.0 / np.sqrt(self.counts + 1.0)
        elif rules.observe == "last":
            out[...] = 0.0
            known = self.last_arm >= 0
            out[self._slots[known], self.last_arm[known]] = 1.0
            out[:, -1] = self.last_reward
        else:
            out[...] = 0

    def info(self, i: int) -> dict[str, Any]:
        """What is known of slot i beyond its observation."""
        return {
            "regret": float(self.regret[i]),
            "best_arm": int(self.best_arm[i]),
            "best_mean": float(self.best_mean[i]),
        }

    def save_state(self) -> dict[str, np.ndarray]:
        """Copies of all arrays; the generators are their owner's."""
        return {name: getattr(self, name).copy() for name in STATE}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take saved arrays in."""
        for name in STATE:
            getattr(self, name)[...] = state[name]
