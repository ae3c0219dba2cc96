"""Vector envs that step all their copies themselves: Gymnasium's own, ALE's, and whatever else keeps the interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from gymnast.envs.actions import executed, is_composite
from gymnast.envs.inprocess import NO_INFO_KEPT, own_copy
from gymnast.envs.spaces import Observation, at, canonical, copy_rows, encoder, leaves, n_masked_actions
from gymnast.envs.spaces import row as one_row
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError


class NativeVector(VectorEnv):
    """A Gymnasium vector env that resets in the same step, or leaves the reset of ended rows to us."""

    exact_resume = "none"

    def __init__(self, envs: gym.vector.VectorEnv) -> None:
        mode = envs.metadata.get("autoreset_mode")
        if mode is None or AutoresetMode(mode) is AutoresetMode.NEXT_STEP:
            said = "does not say when it resets" if mode is None else "resets in the step after an episode's end"
            raise EnvError(
                f"{envs} {said} (autoreset_mode {mode}). That inserts fake transitions between episodes: steps whose "
                "action is ignored. Make it with autoreset_mode SAME_STEP or DISABLED."
            )
        self.envs = envs
        self.n_envs = envs.num_envs
        self.observation_space = canonical(envs.single_observation_space)
        self.action_space = envs.single_action_space
        self._resets_itself = AutoresetMode(mode) is AutoresetMode.SAME_STEP
        self._encode = _batch_encoder(envs.single_observation_space)
        self._encode_one = encoder(envs.single_observation_space)
        self._to_env_actions = action_converter(self.action_space)
        self._returns = np.zeros(self.n_envs)
        self._lengths = np.zeros(self.n_envs, np.int64)
        self.has_action_mask = self._gives_mask()

    def _gives_mask(self) -> bool:
        """Whether reset's info holds action masks of the right length."""
        n_actions = n_masked_actions(self.action_space)
        if n_actions is None:
            return False
        _, info = self.envs.reset(seed=0)
        return "action_mask" in info and np.shape(info["action_mask"]) == (self.n_envs, n_actions)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed and reset every slot; an env that takes only one seed gets one made of all of them."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        obs, info = self._seeded_reset([int(seed) for seed in seeds])
        self._returns[:], self._lengths[:] = 0.0, 0
        copy_rows(row.obs, self._encode(obs))
        if row.mask is not None:
            row.mask[...] = info["action_mask"]

    def _seeded_reset(self, seeds: list[int]) -> tuple[Any, dict[str, Any]]:
        # Gymnasium's envs take a list, ALE's an array, envs with one generator for all rows a single number.
        for several in (seeds, np.array(seeds)):
            try:
                return self.envs.reset(seed=several)  # type: ignore[arg-type]
            except (TypeError, ValueError, gym.error.Error):
                continue
        return self.envs.reset(seed=int(np.random.SeedSequence(seeds).generate_state(1)[0] >> 1))

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step every slot; ended rows come back reset, or are reset here."""
        raw, reward, terminated, truncated, info = self.envs.step(self._to_env_actions(actions))
        self._returns += reward
        self._lengths += 1
        copy_rows(row.obs, self._encode(raw))
        row.reward[...] = reward
        row.terminated[...] = terminated
        row.truncated[...] = truncated
        if row.mask is not None:
            row.mask[...] = info["action_mask"]
        ended = self._ended_rows(np.asarray(terminated), np.asarray(truncated), info)
        if not ended.any():
            return NONE_ENDED
        episodes = [self._episode(int(i), row, info) for i in np.flatnonzero(ended)]
        if not self._resets_itself:
            self._reset_rows(ended, row)
        return episodes

    def _ended_rows(self, terminated: np.ndarray, truncated: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """Rows whose episode ended. An env that reports lost lives as terminated says here which of them are real."""
        return np.asarray(terminated | truncated)

    def _episode(self, i: int, row: StepRow, info: dict[str, Any]) -> EndedEpisode:
        """The ended episode of one row, in memory of its own, and a fresh count for the next."""
        final_info = info
        if self._resets_itself:
            if "final_obs" not in info:
                raise EnvError(f"{self.envs} resets in the same step but its info has no final_obs for row {i}.")
            final_obs, final_info = self._final_obs(info["final_obs"], i), info.get("final_info", {})
        else:
            final_obs = own_copy(one_row(row.obs, i))
        infos = {key: value for key, value in _info_of(final_info, i).items() if key not in NO_INFO_KEPT}
        ret, length = float(self._returns[i]), int(self._lengths[i])
        self._returns[i], self._lengths[i] = 0.0, 0
        return EndedEpisode(i, final_obs, ret, length, bool(row.terminated[i]), infos)

    def _final_obs(self, final: Any, i: int) -> Any:
        """Row i of the final observations, which come as one object per row or as one batch."""
        if not (isinstance(final, np.ndarray) and final.dtype == object):
            return own_copy(one_row(self._encode(final), i))
        return own_copy(self._encode_one(final[i]) if self._encode_one else final[i])

    def _reset_rows(self, ended: np.ndarray, row: StepRow) -> None:
        obs, info = self.envs.reset(options={"reset_mask": ended.copy()})
        fresh = self._encode(obs)
        for key, target in row.obs.items() if isinstance(row.obs, dict) else [(None, row.obs)]:
            target[ended] = (fresh if key is None else fresh[key])[ended]  # type: ignore[index]
        if row.mask is not None:
            row.mask[ended] = info["action_mask"][ended]

    def save_state(self) -> dict[str, Any]:
        """Refused: the state is inside the env's own code."""
        raise EnvError(
            f"{self.envs} steps all its copies itself and gives no access to their state: it cannot be saved."
        )

    def load_state(self, state: dict[str, Any]) -> None:
        """Refused: the state is inside the env's own code."""
        raise EnvError(
            f"{self.envs} steps all its copies itself and gives no access to their state: it cannot be loaded."
        )

    def render(self, index: int = 0) -> np.ndarray | None:
        """Frame of one slot; envs made without a render mode give None."""
        if self.envs.render_mode != "rgb_array":
            return None
        frames = self.envs.render()
        return None if frames is None else np.asarray(frames[index])

    def describe(self) -> str:
        """For the log."""
        return f"{self.n_envs} envs stepped together by {type(self.envs.unwrapped).__name__}"

    def close(self) -> None:
        """Close the env."""
        self.envs.close()


def _batch_encoder(space: spaces.Space[Any]) -> Callable[[Any], Observation]:
    """A function from the env's batch of raw observations to the canonical arrays."""
    parts = leaves(space)
    if parts[0][1]:
        inner = [(name, path, _batch_encoder(leaf)) for name, path, leaf in parts]
        return lambda obs: {name: encode(at(obs, path)) for name, path, encode in inner}  # type: ignore[misc]
    if isinstance(space, spaces.Tuple):
        starts = np.array([int(part.start) for part in space.spaces])  # type: ignore[attr-defined]
        return lambda obs: np.stack(obs, axis=-1) - starts
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        start = np.array(space.start)
        return lambda obs: obs - start
    return lambda obs: obs


def action_converter(space: spaces.Space[Any]) -> Callable[[np.ndarray], Any]:
    """Batched actions as the env wants them, in memory of their own and of the space's type."""
    if is_composite(space):
        return lambda a: executed(a, space)
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        start = np.asarray(space.start)
        return lambda a: (a + start).astype(space.dtype, copy=False)
    return lambda a: np.array(a, space.dtype)


def _info_of(info: dict[str, Any], i: int) -> dict[str, Any]:
    """The entries that row i has: Gymnasium keeps `_key`, a mask of the rows that have `key`."""
    kept: dict[str, Any] = {}
    for key, value in info.items():
        mask = info.get(f"_{key}")
        if key.startswith("_") or (mask is not None and not mask[i]):
            continue
        if isinstance(value, dict):
            kept[key] = _info_of(value, i)
        else:
            kept[key] = value[i] if np.ndim(value) else value
    return kept
