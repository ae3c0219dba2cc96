"""Wrappers that work on all slots at once: they change what the env is and hold no learned statistics.

Each declares its output space, owns a buffer only if shape or dtype changes, and passes `final_obs` through the same
transform. Wrappers that change nothing but rewards or actions let the inner env write straight into the caller's arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.spaces import Observation, allocate
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.errors import ConfigError


class VectorWrapper(VectorEnv):
    """Passes everything through; subclasses change one thing."""

    def __init__(self, inner: VectorEnv) -> None:
        self.inner = inner
        self.n_envs = inner.n_envs
        self.observation_space = inner.observation_space
        self.action_space = inner.action_space
        self.has_action_mask = inner.has_action_mask
        self.exact_resume = inner.exact_resume

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Pass through."""
        self.inner.reset(seeds, row)

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Pass through."""
        return self.inner.step(actions, row)

    def save_state(self) -> dict[str, Any]:
        """The inner state."""
        return self.inner.save_state()

    def load_state(self, state: dict[str, Any]) -> None:
        """The inner state."""
        self.inner.load_state(state)

    def render(self, index: int = 0) -> np.ndarray | None:
        """Pass through."""
        return self.inner.render(index)

    def describe(self) -> str:
        """Pass through."""
        return self.inner.describe()

    def counters(self) -> dict[str, float]:
        """Pass through."""
        return self.inner.counters()

    def close(self) -> None:
        """Pass through."""
        self.inner.close()


class ActionClip(VectorWrapper):
    """Clips continuous actions to the bounds for the env alone; the rollout keeps what the policy chose."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        if not isinstance(inner.action_space, spaces.Box):
            raise ConfigError(f"Wrapper 'action_clip' needs a Box action space, this env has {inner.action_space}.")
        self._low, self._high = inner.action_space.low, inner.action_space.high

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step with clipped actions."""
        return self.inner.step(np.clip(actions, self._low, self._high), row)


class RewardClip(VectorWrapper):
    """Clips the reward the learner sees; reported returns stay the env's own."""

    def __init__(self, inner: VectorEnv, low: float = -1.0, high: float = 1.0) -> None:
        super().__init__(inner)
        if not low < high:
            raise ConfigError(f"Wrapper 'reward_clip' needs low < high, got {low} and {high}.")
        self._low, self._high = low, high

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Clip after the step."""
        ended = self.inner.step(actions, row)
        np.clip(row.reward, self._low, self._high, out=row.reward)
        return ended


class RewardScale(VectorWrapper):
    """Multiplies the reward the learner sees; reported returns stay the env's own."""

    def __init__(self, inner: VectorEnv, factor: float, offset: float = 0.0) -> None:
        super().__init__(inner)
        self._factor, self._offset = np.float32(factor), np.float32(offset)

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Scale after the step."""
        ended = self.inner.step(actions, row)
        row.reward *= self._factor
        row.reward += self._offset
        return ended


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
        self.transform(np.asarray(obs)[None], out)
        return out[0]  # type: ignore[index]

    def _inner_row(self, row: StepRow) -> StepRow:
        return StepRow(self._buffer, row.reward, row.terminated, row.truncated, row.mask)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Transform the first observations."""
        self.inner.reset(seeds, self._inner_row(row))
        self.transform(self._buffer, row.obs)

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Transform rows and final observations alike."""
        ended = self.inner.step(actions, self._inner_row(row))
        self.transform(self._buffer, row.obs)
        for episode in ended:
            if episode.final_obs is not None:
                episode.final_obs = self.transform_one(episode.final_obs)
        return ended


class OneHot(ObservationWrapper):
    """Discrete or MultiDiscrete observations as one-hot vectors."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        space = inner.observation_space
        if isinstance(space, spaces.Discrete):
            sizes = [int(space.n)]
        elif isinstance(space, spaces.MultiDiscrete):
            sizes = [int(n) for n in space.nvec]
        else:
            raise ConfigError(
                f"Wrapper 'one_hot' needs Discrete or Tuple-of-Discrete observations, this env has {space}."
            )
        self._offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self.observation_space = spaces.Box(0.0, 1.0, (sum(sizes),), np.float32)

    def transform(self, obs: np.ndarray, out: np.ndarray) -> None:
        """Ones at the indices."""
        columns = obs.reshape(len(obs), -1) + self._offsets
        out[...] = 0.0
        np.put_along_axis(out, columns, 1.0, axis=1)


class ArrayEncoding(ObservationWrapper):
    """Discrete or MultiDiscrete observations as plain numbers scaled to 0..1."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        space = inner.observation_space
        if isinstance(space, spaces.Discrete):
            sizes = np.array([space.n])
        elif isinstance(space, spaces.MultiDiscrete):
            sizes = np.asarray(space.nvec)
        else:
            raise ConfigError(
                f"Wrapper 'array' needs Discrete or Tuple-of-Discrete observations, this env has {space}."
            )
        self._scale = (1.0 / np.maximum(sizes - 1, 1)).astype(np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (len(sizes),), np.float32)

    def transform(self, obs: np.ndarray, out: np.ndarray) -> None:
        """Index divided by the largest index."""
        np.multiply(obs.reshape(len(obs), -1), self._scale, out=out)


class ObservationStack(VectorWrapper):
    """The last `size` observations, oldest first; after a reset all of them are the first observation."""

    def __init__(self, inner: VectorEnv, size: int = 4) -> None:
        super().__init__(inner)
        space = inner.observation_space
        if not isinstance(space, spaces.Box):
            raise ConfigError(f"Wrapper 'observation_stack' needs Box observations, this env has {space}.")
        if size < 1:
            raise ConfigError(f"Wrapper 'observation_stack' needs size ≥ 1, got {size}.")
        self.size = size
        low, high = (np.repeat(bound[None], size, 0) for bound in (space.low, space.high))
        self.observation_space = spaces.Box(low, high, dtype=space.dtype.type)
        latest = allocate(space, (inner.n_envs,))
        assert isinstance(latest, np.ndarray)
        self._latest = latest
        self._frames = np.repeat(latest[:, None], size, 1)

    def _inner_row(self, row: StepRow) -> StepRow:
        return StepRow(self._latest, row.reward, row.terminated, row.truncated, row.mask)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Fill each stack with the first observation."""
        self.inner.reset(seeds, self._inner_row(row))
        self._frames[...] = self._latest[:, None]
        row.obs[...] = self._frames  # type: ignore[index]

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Shift by one; ended slots start over, their final stack holds only the old episode."""
        ended = self.inner.step(actions, self._inner_row(row))
        self._frames[:, :-1] = self._frames[:, 1:]
        self._frames[:, -1] = self._latest
        for episode in ended:
            i = episode.index
            if episode.final_obs is not None:
                final = self._frames[i].copy()
                final[-1] = episode.final_obs
                episode.final_obs = final
            self._frames[i] = self._latest[i]
        row.obs[...] = self._frames  # type: ignore[index]
        return ended

    def save_state(self) -> dict[str, Any]:
        """Inner state and frames."""
        return {"inner": self.inner.save_state(), "frames": self._frames.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Inner state and frames."""
        self.inner.load_state(state["inner"])
        self._frames[...] = state["frames"]
