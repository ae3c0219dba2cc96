"""Noise on observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gymnast.envs.spaces import row as one_row
from gymnast.envs.spaces import stack
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.generators import SlotGenerators
from gymnast.envs.wrappers.parts import changed_parts
from gymnast.envs.wrappers.vector import VectorWrapper

OUTSIDE = 1 << 16
"""Where the places of wrappers of the whole batch begin: no env has so many layers."""


class ObservationNoise(VectorWrapper):
    """Adds Gaussian noise, from a generator per slot, and clips to the bounds of the space."""

    def __init__(self, inner: VectorEnv, std: float) -> None:
        super().__init__(inner)
        self._std = std
        self._parts = changed_parts(inner.observation_space, "observation_noise")
        self._noise = {key: np.zeros((self.n_envs, *part.shape)) for key, part in self._parts.items()}
        self._generators = SlotGenerators(self.n_envs, OUTSIDE + _noises(inner))

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed, then disturb the first observations."""
        self.inner.reset(seeds, row)
        self._generators.seed(seeds)
        self._disturb(row.obs, range(self.n_envs))

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Disturb final observations, then those in the rows."""
        ended = self.inner.recv(row)
        for episode in ended:
            if episode.final_obs is not None:
                final = stack([episode.final_obs], self.observation_space)
                self._disturb(final, [episode.index])
                episode.final_obs = one_row(final, 0)
        self._disturb(row.obs, range(self.n_envs))
        return ended

    def _disturb(self, obs: Any, slots: Sequence[int]) -> None:
        """Change the rows of `obs`, which belong to `slots`, in place."""
        for key, space in self._parts.items():
            target = obs[key] if key else obs
            noise = self._noise[key][: len(slots)]
            for i, slot in enumerate(slots):
                self._generators.each[slot].standard_normal(out=noise[i, ...])
            noise *= self._std
            noise += target
            np.clip(noise, space.low, space.high, out=noise)
            if np.issubdtype(space.dtype, np.integer):
                target[...] = np.rint(noise)
            else:
                target[...] = noise

    def save_state(self) -> dict[str, Any]:
        """Inner state and generators."""
        return {"inner": self.inner.save_state(), "generators": self._generators.save()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Inner state and generators."""
        self.inner.load_state(state["inner"])
        self._generators.load(state["generators"])


def _noises(envs: Any) -> int:
    """How many wrappers of this kind are inside."""
    count = 0
    while isinstance(envs, VectorWrapper):
        count += isinstance(envs, ObservationNoise)
        envs = envs.inner
    return count
