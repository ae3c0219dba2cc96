"""Envs stepped one after the other in this process: the simplest adapter, and what each worker of the pool runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from gymnast.amounts import count
from gymnast.envs import snapshots
from gymnast.envs.actions import converter
from gymnast.envs.closing import close
from gymnast.envs.first_look import FirstLook
from gymnast.envs.replay import Episodes, replay
from gymnast.envs.spaces import Observation, canonical, choices, encoder, n_masked_actions
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.envs.wrappers.single import executed_by
from gymnast.errors import RAISED_BY_ENVS, EnvError, GymnastError, in_one_line
from gymnast.redaction import logger

MakeEnv = Callable[[], gym.Env]
LIFE_LOST = "life_lost"
"""In a step's info: `terminated` means that a life was lost, and the game goes on."""
NO_INFO_KEPT = frozenset({"action_mask", "TimeLimit.truncated", "prob", LIFE_LOST})
IDLE = -1
NO_LIMIT = sys.maxsize
log = logger(__name__)


class InProcessVector(VectorEnv):
    """N Gymnasium envs in this process; ended slots are reset at once."""

    def __init__(self, make_env: MakeEnv, n_envs: int, *, action_mask: bool = True) -> None:
        self.envs = [make_env() for _ in range(n_envs)]
        first = self.envs[0]
        self.n_envs = n_envs
        self.observation_space = canonical(first.observation_space)
        self.action_space = first.action_space
        self.exact_resume = snapshots.method(first)
        self.first_look = FirstLook(first, n_envs)
        self._encode = encoder(first.observation_space)
        self._choices = choices(self.observation_space)
        self.at: MutableSequence[int] | memoryview = [IDLE]
        """`at[0]` is the slot being stepped or reset; the pool puts shared memory here to name the slot that failed."""
        self.last_look: Callable[[int], None] | None = None
        """Called with a slot whose episode has ended, before it is reset: whoever films needs a picture of the end."""
        self._seeds: list[int | None] = [None] * n_envs
        self._returns = np.zeros(n_envs)
        self._lengths = [0] * n_envs
        self._latest_obs: list[Any] = [None] * n_envs
        self._rewards = np.zeros(n_envs)
        self.infos: list[dict[str, Any]] = []
        """What each env said last, of a reset too; kept only for whoever asks (`keep_infos`)."""
        self.final_infos: dict[int, dict[str, Any]] = {}
        """The same of the episodes that ended in the last step, by slot."""
        self._keeps_infos = False
        self._episodes = Episodes(self.envs) if self.exact_resume == "replay" else None
        self._to_env_actions = converter(self.action_space)
        # Until the first reset through all layers, which then say that it is missing.
        self._steps: list[Callable[[Any], Any]] = [env.step for env in self.envs]
        self._limits = [NO_LIMIT] * n_envs
        self.has_action_mask = self.first_look.masked = action_mask and self._gives_mask()
        n_actions = n_masked_actions(self.action_space) if self.has_action_mask else 0
        self._infos_at_rest = {"action_mask": np.ones(n_actions or 0, np.bool_)}

    def _gives_mask(self) -> bool:
        """Whether reset's info holds an action mask of the right length."""
        if n_masked_actions(self.action_space) is None:
            return False
        self.at[0] = 0
        try:
            _, info = self._fresh(0, 0)
        except RAISED_BY_ENVS as error:
            self._explain(error, None)
            raise
        self.at[0] = IDLE
        return self.first_look.has_mask(info)

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed and reset every slot."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        try:
            self._reset_all(seeds, row)
        except RAISED_BY_ENVS as error:
            self._explain(error, None)
            raise

    def _reset_all(self, seeds: Sequence[int], row: StepRow) -> None:
        self._seeds = list(seeds)
        for i, seed in enumerate(seeds):
            self.at[0] = i
            if self._episodes is not None:
                self._episodes.begin(i, seed, seeded=True)
            self._latest_obs[i], info = self._fresh(i, seed)
            self._lengths[i] = 0
            if row.mask is not None:
                row.mask[i] = info["action_mask"]
        self._returns[:] = 0.0
        self._write_obs(row.obs)
        self._step_directly()
        self.at[0] = IDLE

    def keep_infos(self) -> None:
        """Keep the infos of every step from the next reset on."""
        self._keeps_infos = True
        self.infos = [{} for _ in self.envs]

    def _fresh(self, i: int, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset one env, and look at what it returns."""
        if seed is None:
            value = self.envs[i].reset()
        else:
            value = self.envs[i].reset(seed=seed)
        self.first_look.reset(i, value)
        if self._keeps_infos:
            self.infos[i] = value[1]
        return value

    def _step_directly(self) -> None:
        """From now on past the layers that only count steps, which is done here anyway: a tenth of a cheap env's time."""
        for i, env in enumerate(self.envs):
            counting, inner = _counting_layers(env)
            self._steps[i] = self.first_look.watched(i, self._steps, inner.step)
            self._limits[i] = min((layer._max_episode_steps for layer in counting), default=NO_LIMIT)

    def rest(self, index: int) -> None:
        """Pause a slot until the next reset: its observation stays, and it has no rewards and no ends."""

        def still(action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return self._latest_obs[index], 0.0, False, False, self._infos_at_rest

        self._steps[index], self._limits[index] = still, NO_LIMIT

    def _write_obs(self, target: Observation) -> None:
        latest = self._latest_obs
        if self._encode is not None:
            latest = [self._encode(obs) for obs in latest]
        if isinstance(target, dict):
            for key, array in target.items():
                self._fill(array, [obs[key] for obs in latest])
        else:
            self._fill(target, latest)

        for key, counts in self._choices:
            chosen = target[key] if isinstance(target, dict) else target
            outside = chosen.view(np.uint64) >= counts  # a negative number is a huge one here
            if outside.any():
                i = int(np.argwhere(outside)[0][0])
                self.first_look.out_of_range(i, self._latest_obs[i])

    def _fill(self, target: np.ndarray, values: list[Any]) -> None:
        """All rows at once, which is a third of the time; one by one where that fails, to know whose value is wrong."""
        try:
            target[...] = values
        except (TypeError, ValueError):
            for i, value in enumerate(values):
                self.at[0] = i
                if np.shape(value) != target.shape[1:]:  # numpy would repeat a single number
                    raise ValueError(
                        f"a value of shape {np.shape(value)} came where {target.shape[1:]} is due"
                    ) from None
                target[i] = value

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step every slot in order."""
        try:
            return self._step_all(actions, row)
        except RAISED_BY_ENVS as error:
            self._explain(error, actions)
            raise

    def _explain(self, error: BaseException, actions: np.ndarray | None) -> None:
        """Raise an exception of an env as a sentence that names it; in a worker the pool does that itself."""
        i = self.at[0]
        in_worker = isinstance(self.at, memoryview)
        if in_worker or i == IDLE or isinstance(error, GymnastError):
            return
        did = "while it was reset"
        if actions is not None:
            did = f"after action {actions[i].tolist()}"
        raise EnvError(
            f"Env {i} raised {in_one_line(error)} {did}. It was last reset with seed {self._seeds[i]}. "
            "The fault is in the environment: --debug shows its traceback."
        ) from error

    def _step_all(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        if self._episodes is not None:
            self._episodes.act(actions)
        ended: list[EndedEpisode] = []
        rewards: list[Any] = []
        lengths, latest, at, mask = self._lengths, self._latest_obs, self.at, row.mask
        row.terminated[...] = False
        row.truncated[...] = False
        converted = self._to_env_actions(actions)
        keeps_infos = self._keeps_infos
        if keeps_infos:
            self.final_infos = {}
        for i, (step, limit, action) in enumerate(zip(self._steps, self._limits, converted, strict=True)):
            at[0] = i
            obs, reward, terminated, truncated, info = step(action)
            rewards.append(reward)
            if keeps_infos:
                self.infos[i] = info
            lengths[i] = length = lengths[i] + 1
            if terminated or truncated or length >= limit:
                row.terminated[i] = terminated
                row.truncated[i] = cut_off = truncated or length >= limit
                if cut_off or LIFE_LOST not in info:  # else `terminated` is a lost life, and the game goes on
                    ended.append(self._ended(i, obs, reward, bool(terminated), info))
                    if keeps_infos:
                        self.final_infos[i] = info
                    obs, info = self._reset_slot(i)
            latest[i] = obs
            if mask is not None:
                mask[i] = info["action_mask"]
        self._fill(self._rewards, rewards)
        self._write_obs(row.obs)
        at[0] = IDLE
        row.reward[...] = self._rewards
        self._returns += self._rewards
        for episode in ended:
            self._returns[episode.index] = 0.0
        return ended or NONE_ENDED

    def _ended(self, i: int, obs: Any, reward: Any, terminated: bool, info: dict[str, Any]) -> EndedEpisode:
        self.first_look.final(i, obs)
        final_obs = own_copy(self._encode(obs) if self._encode else obs)
        infos = {key: value for key, value in info.items() if key not in NO_INFO_KEPT}
        return EndedEpisode(i, final_obs, float(self._returns[i] + float(reward)), self._lengths[i], terminated, infos)

    def _reset_slot(self, i: int) -> tuple[Any, dict[str, Any]]:
        if self.last_look is not None:
            self.last_look(i)
        if self._episodes is not None:
            self._episodes.begin(i, self._seeds[i], seeded=False)
        self._lengths[i] = 0
        return self._fresh(i)

    def save_state(self) -> dict[str, Any]:
        """One entry per slot."""
        if self._episodes is None:
            for env, length in zip(self.envs, self._lengths, strict=True):
                for layer in _counting_layers(env)[0]:  # skipped, so their counts do not change
                    layer._elapsed_steps = length
            states = [snapshots.save(env) for env in self.envs]
        else:
            latest = zip(self._latest_obs, self._returns.tolist(), strict=True)
            states = [self._episodes.save(i, obs, ret) for i, (obs, ret) in enumerate(latest)]
        return {
            "method": self.exact_resume,
            "envs": states,
            "seeds": list(self._seeds),
            "returns": self._returns.tolist(),
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
        self._returns[:], self._lengths = state["returns"], list(map(int, state["lengths"]))
        for i, (env, saved) in enumerate(zip(self.envs, state["envs"], strict=True)):
            self.at[0] = i
            if self._episodes is None:
                snapshots.load(env, saved)
                continue
            self._latest_obs[i], exact = replay(env, saved)
            if not exact:
                log.warning(
                    "Env %d did not come back to its saved state when its %d actions were repeated: "
                    "it is not deterministic given its seed, so this resume is not exact.",
                    *(self.first_look.first_slot + i, len(saved["actions"])),
                )
        if self._episodes is not None:
            self._episodes.load(state["envs"])
        self._step_directly()
        self.at[0] = IDLE

    def executed(self, index: int = 0) -> list[Any] | None:
        """As the wrappers of the slot's env remember it."""
        return executed_by(self.envs[index])

    def render(self, index: int = 0) -> np.ndarray | None:
        """Frame of one slot; envs made without a render mode give None."""
        env = self.envs[index]
        frame = env.render() if env.render_mode == "rgb_array" else None
        if frame is None:
            return None
        return np.asarray(frame)

    def describe(self) -> str:
        """How the envs are stepped, in words for the log."""
        return f"{count(self.n_envs, 'env')} in this process"

    def close(self) -> None:
        """Close the env of every slot."""
        for env in self.envs:
            close(env)


def _counting_layers(env: gym.Env) -> tuple[list[Any], gym.Env]:
    """The time limits among the outermost layers, and the env below those that do nothing but count and check."""
    limits: list[Any] = []
    while type(env) in (TimeLimit, OrderEnforcing):
        if isinstance(env, TimeLimit):
            limits.append(env)
        env = env.env  # type: ignore[attr-defined]
    return limits, env


def own_copy(obs: Any) -> Any:
    """The observation in memory of its own: some envs write every observation into the same array."""
    if isinstance(obs, dict):
        return {key: own_copy(value) for key, value in obs.items()}
    if isinstance(obs, tuple):
        return tuple(own_copy(value) for value in obs)
    if isinstance(obs, np.ndarray):
        return obs.copy()
    return obs
