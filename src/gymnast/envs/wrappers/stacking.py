"""Wrappers that remember: the last observations, the last actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.spaces import Observation, allocate
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.parts import changed_parts
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import ConfigError


class ObservationStack(VectorWrapper):
    """The last `size` observations, oldest first, along a new first axis; of a Dict the images, or all Boxes.

    A new episode begins with its first observation repeated, or with zeros before it. One observation is no stack:
    `size: 1` changes nothing, whatever the space.
    """

    def __init__(self, inner: VectorEnv, size: int = 4, padding: str = "first") -> None:
        super().__init__(inner)
        self.size, self._repeats = size, padding == "first"
        self._frames: dict[str, np.ndarray] = {}
        """[N, size, …] by part."""
        self._latest: dict[str, np.ndarray] = {}
        if size == 1:
            return
        parts = changed_parts(inner.observation_space, "frame_stack")
        stacked = {key: self._stacked(part) for key, part in parts.items()}
        for key, part in parts.items():
            latest = allocate(part, (self.n_envs,))
            assert isinstance(latest, np.ndarray)
            self._latest[key], self._frames[key] = latest, np.repeat(latest[:, None], size, 1)
        if "" in stacked:
            self.observation_space = stacked[""]
        else:
            assert isinstance(inner.observation_space, spaces.Dict)
            self.observation_space = spaces.Dict({**inner.observation_space.spaces, **stacked})

    def _stacked(self, space: spaces.Box) -> spaces.Box:
        low, high = (np.repeat(bound[None], self.size, 0) for bound in (space.low, space.high))
        if not self._repeats:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        return spaces.Box(low, high, dtype=space.dtype.type)

    def _inner_row(self, row: StepRow) -> StepRow:
        obs: Observation
        if isinstance(row.obs, dict):
            obs = {**row.obs, **self._latest}
        else:
            obs = self._latest[""]
        return StepRow(obs, row.reward, row.terminated, row.truncated, row.mask, row.own_reward)

    def _begin(self, slots: slice) -> None:
        for key, frames in self._frames.items():
            latest = self._latest[key][slots]
            frames[slots] = latest[:, None] if self._repeats else 0
            frames[slots, -1] = latest

    def _write(self, row: StepRow) -> None:
        for key, frames in self._frames.items():
            (row.obs[key] if key else row.obs)[...] = frames  # type: ignore[index]

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Reset every slot, and fill its stack with the first observation."""
        if self.size == 1:
            return self.inner.reset(seeds, row)
        self.inner.reset(seeds, self._inner_row(row))
        self._begin(slice(None))
        return self._write(row)

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Shift by one; ended slots start over, their final stack holds only the old episode."""
        if self.size == 1:
            return self.inner.recv(row)
        ended = self.inner.recv(self._inner_row(row))
        for key, frames in self._frames.items():
            frames[:, :-1] = frames[:, 1:]
            frames[:, -1] = self._latest[key]
        for episode in ended:
            if episode.final_obs is not None:
                episode.final_obs = self._final(episode)
            self._begin(slice(episode.index, episode.index + 1))
        self._write(row)
        return ended

    def _final(self, episode: EndedEpisode) -> Any:
        finals = {key: frames[episode.index].copy() for key, frames in self._frames.items()}
        for key, final in finals.items():
            final[-1] = episode.final_obs[key] if key else episode.final_obs
        if isinstance(episode.final_obs, dict):
            return {**episode.final_obs, **finals}
        return finals[""]

    def save_state(self) -> dict[str, Any]:
        """Inner state and frames."""
        frames = {key: array.copy() for key, array in self._frames.items()}
        return {"inner": self.inner.save_state(), "frames": frames.get("", frames)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Inner state and frames."""
        self.inner.load_state(state["inner"])
        for key, frames in self._frames.items():
            frames[...] = state["frames"][key] if key else state["frames"]


class ActionStack(VectorWrapper):
    """The last `size` actions the policy chose, oldest first, next to the observation: choices one-hot, zeros before them.

    They are appended to a vector; any other observation becomes a Dict with a part `actions`.
    """

    PART, REST = "actions", "observation"

    def __init__(self, inner: VectorEnv, size: int = 4) -> None:
        super().__init__(inner)
        self._encode = _ActionEncoder(inner.action_space, self.n_envs)
        self._history = np.zeros((self.n_envs, size, self._encode.width), np.float32)
        low, high = (np.tile(bound, size) for bound in (self._encode.low, self._encode.high))
        space = inner.observation_space
        self._vector = isinstance(space, spaces.Box) and len(space.shape) == 1 and space.dtype.kind == "f"
        if self._vector:
            assert isinstance(space, spaces.Box)
            self._width = space.shape[0]
            low, high = np.concatenate((space.low, low)), np.concatenate((space.high, high))
            self.observation_space = spaces.Box(low.astype(np.float32), high.astype(np.float32))
            return
        if isinstance(space, spaces.Dict):
            parts = space.spaces
        else:
            parts = {self.REST: space}
        if self.PART in parts:
            raise ConfigError(f"Wrapper 'action_stack' cannot add a part '{self.PART}': this env has {space}.")
        self.observation_space = spaces.Dict({**parts, self.PART: spaces.Box(low, high)})

    def _inner_row(self, row: StepRow) -> StepRow:
        obs: Any = row.obs
        if self._vector:
            obs = obs[:, : self._width]
        elif isinstance(self.inner.observation_space, spaces.Dict):
            obs = {key: array for key, array in obs.items() if key != self.PART}
        else:
            obs = obs[self.REST]
        return StepRow(obs, row.reward, row.terminated, row.truncated, row.mask, row.own_reward)

    def _write(self, row: StepRow) -> None:
        target = row.obs[:, self._width :] if self._vector else row.obs[self.PART]  # type: ignore[index]
        target[...] = self._history.reshape(self.n_envs, -1)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Nothing was done yet."""
        self.inner.reset(seeds, self._inner_row(row))
        self._history[...] = 0.0
        self._write(row)

    def send(self, actions: np.ndarray) -> None:
        """Remember the actions, and pass them on."""
        self._history[:, :-1] = self._history[:, 1:]
        self._encode(actions, self._history[:, -1])
        self.inner.send(actions)

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """A final observation comes with the old episode's actions."""
        ended = self.inner.recv(self._inner_row(row))
        for episode in ended:
            if episode.final_obs is not None:
                episode.final_obs = self._joined(episode.final_obs, self._history[episode.index].ravel())
            self._history[episode.index] = 0.0
        self._write(row)
        return ended

    def _joined(self, obs: Any, history: np.ndarray) -> Any:
        if self._vector:
            return np.concatenate((np.asarray(obs, np.float32), history))
        return {**(obs if isinstance(obs, dict) else {self.REST: obs}), self.PART: history.copy()}

    def save_state(self) -> dict[str, Any]:
        """Inner state and actions."""
        return {"inner": self.inner.save_state(), "actions": self._history.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Inner state and actions."""
        self.inner.load_state(state["inner"])
        self._history[...] = state["actions"]


class _ActionEncoder:
    """Actions [N, …] as vectors [N, width]: choices one-hot, numbers clipped to their bounds."""

    def __init__(self, space: spaces.Space, n_envs: int) -> None:
        self._box = space if isinstance(space, spaces.Box) else None
        self._columns: np.ndarray | None = None
        """Where the one-hot part of each choice begins."""
        width = int(np.prod(space.shape or ()))
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            if isinstance(space, spaces.Discrete):
                sizes = np.array([space.n])
            else:
                sizes = np.ravel(space.nvec)
            self._columns, width = np.concatenate(([0], np.cumsum(sizes)[:-1])), int(sizes.sum())
        elif not isinstance(space, (spaces.Box, spaces.MultiBinary)):
            raise ConfigError(f"Wrapper 'action_stack' needs actions without parts, this env has {space}.")
        self.low, self.high = np.zeros(width, np.float32), np.ones(width, np.float32)
        if self._box is not None:  # zeros mean no action, so they are inside the bounds
            self.low = np.minimum(self._box.low, 0).ravel().astype(np.float32)
            self.high = np.maximum(self._box.high, 0).ravel().astype(np.float32)
        self.width = width
        self._slots = np.arange(n_envs)[:, None]

    def __call__(self, actions: np.ndarray, out: np.ndarray) -> None:
        """Encode a batch into `out`."""
        rows = actions.reshape(len(actions), -1)
        if self._columns is not None:
            out[...] = 0.0
            out[self._slots, rows + self._columns] = 1.0
        elif self._box is not None:
            out[...] = np.clip(rows, self._box.low.ravel(), self._box.high.ravel())
        else:
            out[...] = rows
