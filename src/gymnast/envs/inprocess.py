"""Envs stepped one after the other in this process: the simplest adapter, and what each worker of the pool runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs import snapshots
from gymnast.envs.actions import converter, is_composite, plain
from gymnast.envs.spaces import canonical, encoder, n_masked_actions, put
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError, GymnastError

MakeEnv = Callable[[], gym.Env]
NO_INFO_KEPT = frozenset({"action_mask", "TimeLimit.truncated", "prob"})
IDLE = -1
log = logging.getLogger(__name__)


class InProcessVector(VectorEnv):
    """N Gymnasium envs in this process; ended slots are reset at once."""

    def __init__(self, make_env: MakeEnv, n_envs: int, *, action_mask: bool = True) -> None:
        self.envs = [make_env() for _ in range(n_envs)]
        first = self.envs[0]
        self.n_envs = n_envs
        self.observation_space = canonical(first.observation_space)
        self.action_space = first.action_space
        self.exact_resume = snapshots.method(first)
        self._encode = encoder(first.observation_space)
        self.at: MutableSequence[int] | memoryview = [IDLE]
        """`at[0]` is the slot being stepped or reset; the pool puts shared memory here to name the slot that failed."""
        self._seeds: list[int | None] = [None] * n_envs
        self._returns = [0.0] * n_envs
        self._lengths = [0] * n_envs
        # Actions of the current episode and the generator before its reset, kept only for envs restored by replay.
        self._episodes: list[dict[str, Any]] | None = [{} for _ in self.envs] if self.exact_resume == "replay" else None
        self._latest_obs: list[Any] = [None] * n_envs
        self._to_env_actions = converter(self.action_space)
        self._keeps_rows = is_composite(self.action_space)
        self.has_action_mask = action_mask and self._gives_mask()

    def _gives_mask(self) -> bool:
        """Whether reset's info holds an action mask of the right length."""
        n_actions = n_masked_actions(self.action_space)
        if n_actions is None:
            return False
        _, info = self.envs[0].reset(seed=0)
        return len(info.get("action_mask", ())) == n_actions

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed and reset every slot."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        try:
            self._reset_all(seeds, row)
        except Exception as error:
            self._explain(error, None)
            raise

    def _reset_all(self, seeds: Sequence[int], row: StepRow) -> None:
        self._seeds = list(seeds)
        for i, (env, seed) in enumerate(zip(self.envs, seeds, strict=True)):
            self.at[0] = i
            obs, info = env.reset(seed=seed)
            if self._episodes is not None:
                # No generator state: repeating the seeded reset is exact, also for envs that do more when seeded.
                self._episodes[i] = {"seed": seed, "generator_at_reset": None, "actions": []}
            self._returns[i], self._lengths[i] = 0.0, 0
            self._write(row, i, obs, info)
        self.at[0] = IDLE

    def _reset_slot(self, i: int) -> tuple[Any, dict[str, Any]]:
        env = self.envs[i]
        if self._episodes is not None:
            generator = snapshots.save_generator(env)
            self._episodes[i] = {"seed": self._seeds[i], "generator_at_reset": generator, "actions": []}
        self._returns[i], self._lengths[i] = 0.0, 0
        return env.reset()

    def _write(self, row: StepRow, i: int, obs: Any, info: dict[str, Any]) -> None:
        self._latest_obs[i] = obs
        put(row.obs, i, self._encode(obs) if self._encode else obs)
        if row.mask is not None:
            row.mask[i] = info["action_mask"]

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step every slot in order."""
        try:
            return self._step_all(actions, row)
        except Exception as error:
            self._explain(error, actions)
            raise

    def _explain(self, error: Exception, actions: np.ndarray | None) -> None:
        """Raise an exception of an env as a sentence that names it; in a worker the pool does that itself."""
        i = self.at[0]
        in_worker = isinstance(self.at, memoryview)
        if in_worker or i == IDLE or isinstance(error, GymnastError):
            return
        what = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":. ")
        did = "while it was reset" if actions is None else f"after action {actions[i].tolist()}"
        raise EnvError(
            f"Env {i} raised {what} {did}. It was last reset with seed {self._seeds[i]}. "
            "The fault is in the environment: --debug shows its traceback."
        ) from error

    def _step_all(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        ended: list[EndedEpisode] = []
        converted = self._to_env_actions(actions)
        returns, lengths, at = self._returns, self._lengths, self.at
        for i, env in enumerate(self.envs):
            at[0] = i
            obs, reward, terminated, truncated, info = env.step(converted[i])
            reward = float(reward)
            returns[i] += reward
            lengths[i] += 1
            row.reward[i] = reward
            row.terminated[i] = terminated
            row.truncated[i] = truncated
            if self._episodes is not None:
                action = actions[i] if self._keeps_rows else converted[i]
                self._episodes[i]["actions"].append(plain(action))
            if terminated or truncated:
                final_obs = own_copy(self._encode(obs) if self._encode else obs)
                infos = {key: value for key, value in info.items() if key not in NO_INFO_KEPT}
                ended.append(EndedEpisode(i, final_obs, returns[i], lengths[i], bool(terminated), infos))
                obs, info = self._reset_slot(i)
            self._write(row, i, obs, info)
        at[0] = IDLE
        return ended or NONE_ENDED

    def save_state(self) -> dict[str, Any]:
        """One entry per slot."""
        if self._episodes is None:
            states = [snapshots.save(env) for env in self.envs]
        else:
            states = [
                {
                    **episode,
                    "actions": list(episode["actions"]),
                    "generator": snapshots.save_generator(env),
                    "fingerprint": snapshots.fingerprint(obs),
                }
                for episode, env, obs in zip(self._episodes, self.envs, self._latest_obs, strict=True)
            ]
        return {
            "method": self.exact_resume,
            "envs": states,
            "seeds": list(self._seeds),
            "returns": list(self._returns),
            "lengths": list(self._lengths),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore every slot by the way it was saved."""
        if len(state["envs"]) != self.n_envs:
            raise EnvError(f"The saved state is of {len(state['envs'])} envs, this run has {self.n_envs}.")
        if state["method"] != self.exact_resume:
            raise EnvError(
                f"The envs were saved by {state['method']}, but these envs are restored by {self.exact_resume}: "
                "resume with the same env and wrappers as the run that was saved."
            )
        self._seeds = list(state["seeds"])
        self._returns, self._lengths = list(state["returns"]), list(state["lengths"])
        for i, (env, saved) in enumerate(zip(self.envs, state["envs"], strict=True)):
            self.at[0] = i
            if self._episodes is None:
                snapshots.load(env, saved)
                continue
            self._latest_obs[i], exact = snapshots.replay(env, saved)
            if not exact:
                log.warning(
                    "Env %d did not come back to its saved state when its %d actions were repeated: "
                    "it is not deterministic given its seed, so this resume is not exact.",
                    *(i, len(saved["actions"])),
                )
            episode = {"seed": saved["seed"], "generator_at_reset": saved["generator_at_reset"]}
            self._episodes[i] = {**episode, "actions": list(saved["actions"])}
        self.at[0] = IDLE

    def render(self, index: int = 0) -> np.ndarray | None:
        """Frame of one slot; envs made without a render mode give None."""
        env = self.envs[index]
        frame = env.render() if env.render_mode == "rgb_array" else None
        return None if frame is None else np.asarray(frame)

    def describe(self) -> str:
        """For the log."""
        return f"{self.n_envs} env{'s' if self.n_envs > 1 else ''} in this process"

    def close(self) -> None:
        """Close every env."""
        for env in self.envs:
            env.close()


def own_copy(obs: Any) -> Any:
    """The observation in memory of its own: some envs write every observation into the same array."""
    if isinstance(obs, dict):
        return {key: own_copy(value) for key, value in obs.items()}
    return obs.copy() if isinstance(obs, np.ndarray) else obs
