"""Wrappers of the whole batch: they change what the env is and hold no learned statistics.

Each declares its output space, owns a buffer only if shape or dtype changes, and passes `final_obs` through the same
transform. Wrappers that change nothing but rewards or actions let the inner env write straight into the caller's arrays.
A step has two halves: what a wrapper does to actions belongs into `send`, what it does to their outcome into `recv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gymnast.envs.spaces import Observation, allocate, row, stack
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv


class VectorWrapper(VectorEnv):
    """Passes everything through; subclasses change one thing."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a `step` of its own: wrappers outside and rollouts on a GPU call the two halves, and would pass it by."""
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            raise TypeError(
                f"{cls.__name__} is a VectorWrapper with a `step` of its own, which is not always called: do what it does "
                "to actions in `send`, and what it does to their outcome in `recv`."
            )

    def __init__(self, inner: VectorEnv) -> None:
        self.inner = inner
        self.n_envs = inner.n_envs
        self.observation_space = inner.observation_space
        self.action_space = inner.action_space
        self.has_action_mask = inner.has_action_mask
        self.changes_reward = inner.changes_reward
        self.exact_resume = inner.exact_resume
        self.keeps_slots = type(self).keeps_slots and inner.keeps_slots

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Reset the inner envs; a wrapper changes what it is about."""
        self.inner.reset(seeds, row)

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Both halves of a step, one after the other."""
        self.send(actions)
        return self.recv(row)

    def send(self, actions: np.ndarray) -> None:
        """Pass the actions on to the inner envs."""
        self.inner.send(actions)

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Pass on what the inner envs answer."""
        return self.inner.recv(row)

    def rest(self, index: int) -> None:
        """Tell the inner envs that a slot may rest."""
        self.inner.rest(index)

    def save_state(self) -> dict[str, Any]:
        """The state of the inner envs; a wrapper adds its own."""
        return self.inner.save_state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state of the inner envs."""
        self.inner.load_state(state)

    def executed(self, index: int = 0) -> list[Any] | None:
        """What the inner env executed in its last step."""
        return self.inner.executed(index)

    def render(self, index: int = 0) -> np.ndarray | None:
        """The picture that the inner env draws."""
        return self.inner.render(index)

    def describe(self) -> str:
        """How the inner envs are stepped; wrappers do not change that."""
        return self.inner.describe()

    def counters(self) -> dict[str, float]:
        """The counters of the inner envs."""
        return self.inner.counters()

    def close(self) -> None:
        """Close the inner envs."""
        self.inner.close()


class ObservationWrapper(VectorWrapper):
    """Base of wrappers that change observations: the inner env writes into a buffer of its own."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        self._buffer: Observation = allocate(inner.observation_space, (inner.n_envs,))

    def transform(self, obs: Any, out: Any) -> None:
        """Write the transformed batch `obs` into `out`."""
        raise NotImplementedError

    def transform_one(self, obs: Any) -> Any:
        """The transform of a single observation, for `final_obs`."""
        out = allocate(self.observation_space, (1,))
        self.transform(stack([obs], self.inner.observation_space), out)
        return row(out, 0)

    def _inner_row(self, row: StepRow) -> StepRow:
        return StepRow(self._buffer, row.reward, row.terminated, row.truncated, row.mask, row.own_reward)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Transform the first observations."""
        self.inner.reset(seeds, self._inner_row(row))
        self.transform(self._buffer, row.obs)

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Transform rows and final observations alike."""
        ended = self.inner.recv(self._inner_row(row))
        self.transform(self._buffer, row.obs)
        for episode in ended:
            if episode.final_obs is not None:
                episode.final_obs = self.transform_one(episode.final_obs)
        return ended
