"""ALE's own vector env behind the contract: many games stepped by threads in C++, frames ready to be learned from.

Differences to ALE's own interface:

- Rewards are never clipped, and ended slots are reset in the same step.
- With `life_loss: terminal` a lost life sets `terminated` though the game goes on. The frame at which the game began
  (`frame_number − episode_frame_number`) changes with every reset and with nothing else: it tells real ends.
- The frame cap is counted here. ALE would leave the loop of skipped frames before it has looked at the last one, and the
  observation to bootstrap from would be the one before. At the end of a game (`terminated`) that stays so: the last
  observation shows the frame before, on which nobody acts and from which nothing is bootstrapped.

The random streams are ALE's own, so the episodes are others than those of `AtariGame` under the same protocol.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.amounts import count
from gymnast.config.atari import AtariConfig
from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import cores
from gymnast.envs.families.atari.actions import action_set
from gymnast.envs.families.atari.roms import ale_py, game_of, rom_path
from gymnast.envs.spaces import canonical
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError

CONTINUE = -1
"""Instead of a seed: the slot's random stream goes on."""


class AtariVector(VectorEnv):
    """N copies of one game. One seed per slot; the number of threads changes nothing but the speed."""

    exact_resume = "none"

    def __init__(
        self, n_envs: int, *, game: str, protocol: AtariConfig, n_threads: int, max_episode_steps: int
    ) -> None:
        self.n_envs = n_envs
        self._n_threads = min(n_threads, n_envs)
        self._limit = max_episode_steps
        self.observation_space = canonical(pixel_space(protocol))
        actions = action_set(game, protocol.actions)
        self.action_space = spaces.Discrete(len(actions.labels))
        self._index = np.array(actions.indices)
        self._strengths = [1.0] * n_envs
        self._slots = np.arange(n_envs)
        self._returns = np.zeros(n_envs)
        self._clock = 0
        self._started = np.zeros(n_envs, np.int64)
        """The clock's time at which each slot's episode began."""
        self._deadline = self._limit
        """When the oldest episode reaches the limit: nothing is compared before."""
        self._begun_at = np.zeros(n_envs, np.int32)
        """The frame, counted since the seeded reset, at which each slot's game began."""
        self._life_ends_nothing = protocol.life_loss == "terminal"
        self._make = _maker(game, protocol, actions.full, n_envs, self._n_threads, max_episode_steps)
        self._ale: Any = None

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed and reset every slot."""
        if len(seeds) != self.n_envs:
            raise ValueError(f"{self.n_envs} envs need {self.n_envs} seeds, got {len(seeds)}")
        if self._ale is None:
            self._ale = self._make()
        obs, info = self._ale.reset(self._slots, np.array([int(seed) for seed in seeds]))
        row.obs[...] = obs  # type: ignore[index]
        self._begun_at = info["frame_number"] - info["episode_frame_number"]
        self._returns[:], self._started[:] = 0.0, 0
        self._clock, self._deadline = 0, self._limit

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Send the actions and wait for what they led to."""
        self.send(actions)
        return self.recv(row)

    def send(self, actions: np.ndarray) -> None:
        """Let the threads begin. An action that does not exist is refused here: there it would never be answered."""
        self._ale.send(self._index[actions].tolist(), self._strengths)  # lists are what it takes fastest

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """Wait for the threads."""
        obs, reward, terminated, _, info = self._ale.recv()
        self._clock += 1
        self._returns += reward
        row.obs[...] = obs  # type: ignore[index]
        row.reward[...] = reward
        row.terminated[...] = terminated
        row.truncated.fill(False)
        if self._clock >= self._deadline:
            np.greater_equal(self._clock - self._started, self._limit, out=row.truncated)
        elif not np.count_nonzero(terminated):
            return NONE_ENDED
        return self._ended(row, terminated, info)

    def _ended(self, row: StepRow, terminated: np.ndarray, info: dict[str, Any]) -> Sequence[EndedEpisode]:
        begun_at = info["frame_number"] - info["episode_frame_number"]
        over = begun_at != self._begun_at if self._life_ends_nothing else terminated
        cut_off = np.flatnonzero(row.truncated & ~over)
        ended = np.flatnonzero(over | row.truncated).tolist()
        self._begun_at = begun_at
        if not ended:
            return NONE_ENDED
        finals = {i: info["final_obs"][i] if over[i] else row.obs[i] for i in ended}  # type: ignore[index]
        episodes = [self._episode(i, finals[i].copy(), bool(terminated[i])) for i in ended]
        if len(cut_off):
            self._reset_slots(cut_off, row)
        self._returns[ended], self._started[ended] = 0.0, self._clock
        self._deadline = int(self._started.min()) + self._limit
        return episodes

    def _episode(self, i: int, final_obs: np.ndarray, terminated: bool) -> EndedEpisode:
        length = self._clock - int(self._started[i])
        return EndedEpisode(i, final_obs, float(self._returns[i]), length, terminated)

    def _reset_slots(self, slots: np.ndarray, row: StepRow) -> None:
        """Those that reached the limit; ALE has reset the others."""
        obs, info = self._ale.reset(slots, np.full(len(slots), CONTINUE))
        row.obs[slots] = obs[slots]  # type: ignore[index]
        self._begun_at = info["frame_number"] - info["episode_frame_number"]

    def save_state(self) -> dict[str, Any]:
        """Refused: the state is inside ALE."""
        raise EnvError("ALE's vector env gives no access to the state of its games: it cannot be saved.")

    def load_state(self, state: dict[str, Any]) -> None:
        """Refused: the state is inside ALE."""
        raise EnvError("ALE's vector env gives no access to the state of its games: it cannot be loaded.")

    def describe(self) -> str:
        """How the games are stepped, in words for the log."""
        return f"{count(self.n_envs, 'game')} in ALE's vector env, {count(self._n_threads, 'thread')}"

    def close(self) -> None:
        """Drop the vector env, which ends its threads."""
        self._ale = None


def pixel_space(protocol: AtariConfig) -> spaces.Box:
    """Stacked frames, oldest first: [stack, height, width] or, in colour, [stack, height, width, 3]."""
    shape: tuple[int, ...] = (protocol.stack, *protocol.size)
    if not protocol.gray:
        shape += (3,)
    return spaces.Box(0, 255, shape, np.uint8)


def _maker(
    game: str, protocol: AtariConfig, full: bool, n_envs: int, n_threads: int, max_episode_steps: int
) -> Callable[[], Any]:
    height, width = protocol.size
    arguments = {
        "rom_path": rom_path(game),
        "num_envs": n_envs,
        "frame_skip": protocol.skip,
        "stack_num": protocol.stack,
        "img_height": height,
        "img_width": width,
        "grayscale": protocol.gray,
        "maxpool": protocol.max_pool,
        "noop_max": protocol.noops,
        "use_fire_reset": protocol.fire_reset,
        "episodic_life": protocol.life_loss == "episode",
        "life_loss_info": protocol.life_loss == "terminal",
        "reward_clipping": False,
        "max_episode_steps": (max_episode_steps + 1) * protocol.skip,  # in frames, and never reached
        "repeat_action_probability": protocol.sticky,
        "full_action_space": full,
        "batch_size": 0,
        "num_threads": n_threads,
        "thread_affinity_offset": -1,
        "autoreset_mode": "SameStep",
    }
    package = ale_py()
    return lambda: package.ALEVectorInterface(**arguments)


def native_games(config: EnvConfig) -> Callable[[int], AtariVector] | str:
    """A constructor that takes the number of envs, or why ALE's vector env cannot play this."""
    if config.atari is None:
        return "ALE's vector env plays games with an env.atari section"
    if why := why_not_native(config.atari):
        return why
    limit = time_limit_of(config)
    assert limit is not None
    return functools.partial(
        AtariVector,
        game=game_of(config),
        protocol=config.atari,
        n_threads=config.n_workers if isinstance(config.n_workers, int) else cores(),
        max_episode_steps=limit,
    )


def why_not_native(protocol: AtariConfig) -> str | None:
    """Why ALE's vector env cannot play this; None when it can."""
    if protocol.obs != "pixels":
        return f"ALE's vector env gives pixels only, env.atari.obs is {protocol.obs}"
    if protocol.mode is not None or protocol.difficulty is not None:
        return "ALE's vector env plays the default mode and difficulty only"
    return None
