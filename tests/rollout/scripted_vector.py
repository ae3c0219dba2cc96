"""A vector env that plays a written script: what every step gives is known before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv


@dataclass
class Step:
    """One step of one slot. `obs` is what the row holds afterwards: the next episode's first where one ended."""

    obs: float
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    ended: bool = False
    final: float | None = None
    mask: tuple[bool, ...] | None = None


class ScriptedVector(VectorEnv):
    """Slot i plays scripts[i] and starts over when it is through; observations are one number each."""

    def __init__(
        self,
        first: Sequence[float],
        scripts: Sequence[Sequence[Step]],
        *,
        action_space: spaces.Space | None = None,
        first_mask: Sequence[bool] | None = None,
    ) -> None:
        self.n_envs = len(scripts)
        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = action_space or spaces.Discrete(2)
        self.has_action_mask = first_mask is not None
        self._first, self._scripts, self._first_mask = first, scripts, first_mask
        self.steps = 0
        self._returns = [0.0] * self.n_envs
        self._lengths = [0] * self.n_envs
        self.actions: list[np.ndarray] = []

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """The first observations, whatever the seeds."""
        row.obs[:, 0] = self._first  # type: ignore[call-overload]
        if row.mask is not None:
            row.mask[...] = self._first_mask

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """The next line of each script."""
        self.actions.append(np.array(actions))
        ended = []
        for i, script in enumerate(self._scripts):
            line = script[self.steps % len(script)]
            row.obs[i] = line.obs  # type: ignore[index]
            row.reward[i] = line.reward
            row.terminated[i], row.truncated[i] = line.terminated, line.truncated
            if row.mask is not None:
                row.mask[i] = self._first_mask if line.mask is None else line.mask
            self._returns[i] += line.reward
            self._lengths[i] += 1
            if line.ended:
                final = None if line.final is None else np.array([line.final], np.float32)
                ended.append(EndedEpisode(i, final, self._returns[i], self._lengths[i], line.terminated))
                self._returns[i], self._lengths[i] = 0.0, 0
        self.steps += 1
        return ended

    def save_state(self) -> dict[str, Any]:
        """Where the script stands."""
        return {"steps": self.steps}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on there."""
        self.steps = state["steps"]
