"""The one environment contract (SAME_STEP) that every adapter delivers and everything else relies on.

`step` writes into the caller's arrays and returns only the episodes that ended. A row whose episode ended already holds
the first observation of the next one, so every one of the T×N samples is a real transition and shapes never change.
Only the returned list means that a reset happened; `terminated` alone may also be set by a lost life.
Returns and lengths are counted at the bottom, in the env's own reward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.spaces import Observation, allocate, n_masked_actions
from gymnast.envs.spaces import row as obs_rows


@dataclass(slots=True)
class StepRow:
    """Where one vector step is written. `mask` is None unless the env has action masks.

    `own_reward` takes the reward before any wrapper of the batch changed it; None if none does.
    """

    obs: Observation
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    mask: np.ndarray | None = None
    own_reward: np.ndarray | None = None


@dataclass(slots=True)
class EndedEpisode:
    """An episode that ended in this step; its slot has been reset."""

    index: int
    final_obs: Any
    """Last observation of the ended episode (canonical); None when the env was lost, so there is nothing to bootstrap from."""
    ret: float
    """Sum of the env's own rewards."""
    length: int
    terminated: bool
    infos: dict[str, Any] = field(default_factory=dict)


def some_rows(row: StepRow, slots: slice) -> StepRow:
    """Some slots of a row, as views."""
    mask = None if row.mask is None else row.mask[slots]
    own = None if row.own_reward is None else row.own_reward[slots]
    return StepRow(obs_rows(row.obs, slots), row.reward[slots], row.terminated[slots], row.truncated[slots], mask, own)


NONE_ENDED: tuple[EndedEpisode, ...] = ()


class VectorEnv(ABC):
    """N copies of one environment, stepped together."""

    n_envs: int
    observation_space: spaces.Space
    """Canonical space of one env (see `spaces.canonical`)."""
    action_space: spaces.Space
    """Action space of one env."""
    has_action_mask: bool = False
    changes_reward: bool = False
    """Whether a wrapper of the batch changes rewards, so that rows have an `own_reward`."""
    keeps_slots: bool = True
    """Whether a row is the same env in every step. A wrapper that permutes or skips slots says False: what happened in their
    episodes cannot be remembered."""
    _sent: np.ndarray
    exact_resume: str = "none"
    """How `save_state` works: `snapshot`, `replay`, or `none`."""

    @abstractmethod
    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Start a new episode in every slot; slot i is seeded with seeds[i]. Writes `obs` and `mask` only."""

    @abstractmethod
    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step every slot, write the outcome into `row`, reset ended slots, return the ended episodes."""

    def send(self, actions: np.ndarray) -> None:
        """Begin a step; `recv` ends it. Envs with threads of their own step meanwhile, others step in `recv`."""
        self._sent = actions

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """End the step that `send` began, as `step` does."""
        return self.step(self._sent, row)

    @abstractmethod
    def save_state(self) -> dict[str, Any]:
        """State of all slots as a tree of JSON values and numpy arrays."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Continue exactly where `save_state` was called."""

    def rest(self, index: int) -> None:  # noqa: B027 - an adapter that cannot steps on, which nobody sees
        """This slot is not needed until the next reset: it may pause, so that others are faster."""

    def executed(self, index: int = 0) -> list[Any] | None:
        """The actions a slot's env was given in the last step, one per frame; None if no wrapper changes actions."""
        return None

    def render(self, index: int = 0) -> np.ndarray | None:
        """RGB frame of one slot, or None when it cannot render."""
        return None

    def describe(self) -> str:
        """How the envs are stepped, for the log."""
        return f"{self.n_envs} envs"

    def counters(self) -> dict[str, float]:
        """Catalogued metrics of this adapter (worker restarts, for instance)."""
        return {}

    def close(self) -> None:  # noqa: B027 - most adapters have nothing to release
        """Release processes, windows and shared memory. Safe to call twice."""

    def new_row(self) -> StepRow:
        """Fresh arrays for one step, for callers that keep no rollout."""
        return StepRow(
            obs=allocate(self.observation_space, (self.n_envs,)),
            reward=np.zeros(self.n_envs, np.float32),
            terminated=np.zeros(self.n_envs, np.bool_),
            truncated=np.zeros(self.n_envs, np.bool_),
            mask=self.new_mask((self.n_envs,)),
            own_reward=np.zeros(self.n_envs, np.float32) if self.changes_reward else None,
        )

    def new_mask(self, leading: tuple[int, ...]) -> np.ndarray | None:
        """All-valid action masks, or None when this env has none."""
        if not self.has_action_mask:
            return None
        n_actions = n_masked_actions(self.action_space)
        assert n_actions is not None
        return np.ones((*leading, n_actions), np.bool_)
