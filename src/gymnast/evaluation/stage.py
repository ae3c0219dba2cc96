"""The stage: one env on one slot, drawn or not, for whoever plays or films single episodes. Imports no torch."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import executed
from gymnast.envs.drawing import advice_for, drawing
from gymnast.envs.families import rendering_advice
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.registry import env_spec
from gymnast.envs.rewards.vector import terms_of
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.errors import RAISED_BY_ENVS, EnvError, UsageError, in_one_line

DEFAULT_FPS = 30.0
WITH_ALPHA = 4
"""Channels of a picture that says how opaque its pixels are."""


class Listener(Protocol):
    """Gets what happens at the bare env, below all wrappers: every frame under a frame skip, every reset."""

    def began(self, seed: int | None, obs: Any) -> None:
        """The bare env was reset."""

    def stepped(self, action: Any, obs: Any, reward: Any) -> None:
        """The bare env made one step. The observation may be an array that the env writes into again."""


class Stage:
    """One env with its wrappers, played episode by episode."""

    def __init__(self, env: EnvConfig, *, drawn: bool) -> None:
        self.config = env.model_copy(update={"vectorization": "inprocess"})
        self.drawn = drawn
        self._open = ExitStack()
        if drawn:
            self._open.enter_context(drawing(env_spec(env.id, env.module)))
        try:
            self.envs = _make(self.config, drawn=drawn)
        except BaseException:
            self._open.close()
            raise
        self._open.callback(self.envs.close)
        self._bottom = _bottom(self.envs)
        self._bottom.last_look = self._look_at_the_end
        self._ear, heard = _with_ear(self._bottom.envs[0])
        self._overheard = self._bottom.envs[0] = _Overheard(heard)
        self.fps = _fps(self._bottom)
        """Frames of the game per second."""
        self.row: StepRow = self.envs.new_row()
        """What the last step or reset wrote."""
        self.final_picture: np.ndarray | None = None
        """The last picture of the episode that ended, which can no longer be drawn."""

    @property
    def bare_env(self) -> gym.Env:
        """The env below all wrappers."""
        return self._bottom.envs[0].unwrapped

    @property
    def info(self) -> dict[str, Any]:
        """What the env said in its last step."""
        return self._overheard.info

    @property
    def reward_terms(self) -> dict[str, float]:
        """What each term of `env.rewards` added in the last step."""
        terms = terms_of(self.envs)
        return {} if terms is None else terms.latest()

    def listen(self, listener: Listener) -> None:
        """From now on, this listener alone gets what happens at the bare env."""
        self._ear.listener = listener

    def forget(self, listener: object) -> None:
        """Tell this one nothing more, if it was told at all."""
        if self._ear.listener is listener:
            self._ear.listener = None

    def reset(self, seed: int) -> None:
        """Begin an episode under a seed."""
        self.envs.reset([seed], self.row)

    def step(self, actions: np.ndarray) -> EndedEpisode | None:
        """Step with one action [1, ...]. After the end of an episode `row` shows the beginning of another one."""
        ended = self.envs.step(actions, self.row)
        if ended:
            return ended[0]
        return None

    def given(self, actions: np.ndarray) -> list[Any]:
        """What the bare env was given for these actions in the last step, frame by frame."""
        return self.envs.executed(0) or [executed(actions[0], self.envs.action_space)]

    def draw(self) -> np.ndarray:
        """What the env shows now: RGB [H, W, 3] uint8."""
        try:
            picture = self.envs.render(0)
        except RAISED_BY_ENVS as error:  # whatever the env's graphics library raises
            what = in_one_line(error)
            advice = rendering_advice(env_spec(self.config.id, self.config.module)) or advice_for(error)
            raise EnvError(f"{self.config.id} cannot render: it raised {what}.{advice}") from error
        if picture is None:
            raise EnvError(f"{self.config.id} cannot render as rgb_array: its render() gives no frames.")
        if picture.ndim == 3 and picture.shape[2] == WITH_ALPHA:
            picture = picture[..., :3]  # how opaque a pixel is means nothing in a film
        if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
            raise EnvError(
                f"{self.config.id} cannot be filmed: its render() gives {picture.dtype} {picture.shape}, "
                "a picture is an array [height, width, 3] of uint8."
            )
        return picture

    def _look_at_the_end(self, slot: int) -> None:
        if self.drawn:
            self.final_picture = self.draw().copy()  # the reset that follows may draw into the same array

    def close(self) -> None:
        """Close the env and its window."""
        self._open.close()


class _Overheard(gym.Wrapper):
    """Keeps the info of the last step: the contract passes on only that of ended episodes."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.info: dict[str, Any] = {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and keep what the env says."""
        obs, reward, terminated, truncated, self.info = self.env.step(action)
        return obs, reward, terminated, truncated, self.info


class _Ear(gym.Wrapper):
    """The innermost layer: passes everything on, and tells a listener about it."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.listener: Listener | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset, and tell."""
        obs, info = self.env.reset(seed=seed, options=options)
        if self.listener is not None:
            self.listener.began(seed, obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and tell."""
        result = self.env.step(action)
        if self.listener is not None:
            self.listener.stepped(action, result[0], result[1])
        return result


def _with_ear(env: gym.Env) -> tuple[_Ear, gym.Env]:
    """The ear next to the bare env, and the whole with it."""
    ear = _Ear(env.unwrapped)
    layer = env
    while isinstance(layer, gym.Wrapper) and layer.env is not env.unwrapped:
        layer = layer.env
    if not isinstance(layer, gym.Wrapper):
        return ear, ear  # there is no wrapper at all
    layer.env = ear
    return ear, env


def _make(env: EnvConfig, *, drawn: bool) -> VectorEnv:
    if not drawn:
        return make_envs(env, 1)
    try:
        return make_envs(env, 1, render_mode="rgb_array")
    except UsageError:
        make_envs(env, 1).close()  # an env that cannot be made at all says so itself
        raise EnvError(f"{env.id} cannot render: it does not take render_mode='rgb_array'.") from None


def _bottom(envs: VectorEnv) -> InProcessVector:
    """What steps the env, below the wrappers of the batch."""
    inner: Any = envs
    while hasattr(inner, "inner"):
        inner = inner.inner
    assert isinstance(inner, InProcessVector)
    return inner


def _fps(bottom: InProcessVector) -> float:
    """Frames per second as the env's metadata say."""
    fps: Any = (bottom.envs[0].metadata or {}).get("render_fps")
    known = isinstance(fps, (int, float, np.number)) and 0 < fps < math.inf
    if known:
        return float(fps)
    return DEFAULT_FPS
