"""One Atari game as a Gymnasium env, straight on ALE's emulator, with the whole protocol and exact snapshots (ENV-3).

Sticky actions are drawn here, from the env's own generator: ALE forgets the last action when its state is saved. Frames are
emulated one by one for that reason, which costs little next to emulation. ALE's own generator then decides nothing but
in Adventure. Every game begins on a fresh console: after ALE's own reset a quarter of the games still know what was played
before. So an episode depends on the env's generator alone.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.config.atari import AtariConfig
from gymnast.envs.families.atari.actions import action_set
from gymnast.envs.families.atari.roms import ale_py, rom_path
from gymnast.envs.families.atari.views import view_of
from gymnast.envs.generators import load_generator, save_generator
from gymnast.envs.inprocess import LIFE_LOST
from gymnast.errors import ConfigError

NOOP, FIRE = 0, 1
FRAMES_PER_SECOND = 60
NOT_RESTORED = frozenset({"qbert", "tetris", "miniature_golf", "pitfall2"})
"""Games that ale-py 0.12 does not restore exactly once they are played (its pull request 732): episodes are repeated instead."""
ADVENTURE = "adventure"
"""The one game that asks ALE's generator, in its third mode."""


class AtariGame(gym.Env[np.ndarray, int]):
    """One game under the given protocol."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, game: str, protocol: AtariConfig | None = None, render_mode: str | None = None) -> None:
        self.protocol = protocol = protocol or AtariConfig()
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": max(1, FRAMES_PER_SECOND // protocol.skip)}
        self.ale = ale_py().ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("random_seed", 0)  # not the time, so that equal games have equal states
        self._game, self._rom = game, rom_path(game)
        self._load_rom()
        self._fresh = self.ale.cloneState(include_rng=True)
        """The console before anything was played: restoring it takes a thousandth of the time of loading the ROM again."""
        self._actions = action_set(game, protocol.actions)
        self._view = view_of(self.ale, game, protocol)
        self.action_space = spaces.Discrete(len(self._actions.labels))  # type: ignore[assignment]
        self.observation_space = self._view.space
        self._pressed = NOOP
        """What the console was given last."""
        self._lives = 0
        self._frames = 0
        """Of the episode, counted from the first step."""

    def _load_rom(self) -> None:
        self.ale.loadROM(self._rom)
        for name, value in (("mode", self.protocol.mode), ("difficulty", self.protocol.difficulty)):
            if value is None:
                continue
            if name == "mode":
                known = self.ale.getAvailableModes()
            else:
                known = self.ale.getAvailableDifficulties()
            if value not in known:
                raise ConfigError(f"'{self._game}' has no {name} {value} (env.atari.{name}): it has {_listed(known)}.")
            (self.ale.setMode if name == "mode" else self.ale.setDifficulty)(value)

    def get_action_meanings(self) -> list[str]:
        """The label of each action."""
        return list(self._actions.labels)

    @property
    def can_be_saved(self) -> bool:
        """Whether ALE restores this game exactly."""
        return self._game not in NOT_RESTORED

    @property
    def unstacked_space(self) -> spaces.Space:
        """Shape of a single observation: one frame of the stack, or everything without a stack."""
        if self.protocol.obs != "pixels":
            return self.observation_space
        whole = self._view.space
        return spaces.Box(0, 255, whole.shape[1:], np.uint8)

    def unstacked(self, obs: np.ndarray) -> np.ndarray:
        """The newest frame of an observation."""
        if self.protocol.obs != "pixels":
            return obs
        newest: np.ndarray = obs[-1]
        return newest

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """A new game: FIRE where it starts the game, then a random number of frames without a button."""
        super().reset(seed=seed)
        self._restart()
        protocol = self.protocol
        waits = 0
        if protocol.noops:
            waits = int(self.np_random.integers(protocol.noops))
        if protocol.fire_reset and self._actions.fires:
            self._frame(FIRE)
            waits -= 1
        for _ in range(waits):
            self._frame(NOOP)
            if self.ale.game_over():
                self._restart()
        self._lives, self._frames = self.ale.lives(), 0
        return self._view.begin(), {"lives": self._lives}

    def _restart(self) -> None:
        if self._game == ADVENTURE:
            self.ale.setInt("random_seed", int(self.np_random.integers(2**31 - 1)))
            self._load_rom()
        else:
            self.ale.restoreState(self._fresh)
        self.ale.reset_game()
        self._pressed = NOOP

    def _frame(self, wanted: int) -> int:
        """One frame with the wanted button, or with the last one again."""
        sticky = self.protocol.sticky
        if not sticky or self.np_random.random() >= sticky:
            self._pressed = wanted
        return int(self.ale.act(self._pressed))

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Press a button for the frames of one step; the end of an episode cuts them short."""
        ale, view, protocol, before = self.ale, self._view, self.protocol, self._lives
        wanted, reward, over, life_lost = self._actions.codes[action], 0, False, False
        for frames_left in range(protocol.skip - 1, -1, -1):
            reward += self._frame(wanted)
            self._frames += 1
            over = ale.game_over()
            life_lost = 0 < ale.lives() < before
            if over or (life_lost and protocol.life_loss == "episode"):
                break
            if frames_left < view.frames:
                view.look(frames_left)
        self._lives = ale.lives()
        info: dict[str, Any] = {"lives": self._lives}
        if life_lost and not over and protocol.life_loss == "terminal":
            info[LIFE_LOST] = True
        terminated = over or (life_lost and protocol.life_loss != "ignore")
        return view.observe(), float(reward), terminated, self._frames >= protocol.frame_cap, info

    def render(self) -> np.ndarray | None:
        """The screen, 210×160 in colour."""
        if self.render_mode == "rgb_array":
            return np.asarray(self.ale.getScreenRGB())
        return None

    def save_state(self) -> dict[str, Any]:
        """Emulator, generator, and what is remembered between steps."""
        return {
            "emulator": self.ale.cloneState(include_rng=True).serialize(),
            "generator": save_generator(self),
            "pressed": self._pressed,
            "lives": self._lives,
            "frames": self._frames,
            "view": self._view.save(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved moment of a game."""
        self.ale.restoreState(ale_py().ALEState(bytes(state["emulator"])))
        load_generator(self, state["generator"])
        self._pressed, self._lives, self._frames = state["pressed"], state["lives"], state["frames"]
        self._view.load(state["view"])


def save(env: gym.Env) -> dict[str, Any]:
    """The game's state, as `envs/snapshots.py` asks every family for it."""
    state: dict[str, Any] = env.unwrapped.save_state()  # type: ignore[attr-defined]
    return state


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Put a saved state back; the counterpart of `save`."""
    env.unwrapped.load_state(state)  # type: ignore[attr-defined]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
