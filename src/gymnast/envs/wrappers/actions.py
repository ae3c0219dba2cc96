"""Wrappers that change actions on their way to the env; the rollout keeps what the policy chose."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnast.envs.actions import executed, is_composite, plain, random_actions, row
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.single import ActionChanger, Reset, Step
from gymnast.envs.wrappers.vector import VectorWrapper
from gymnast.errors import ConfigError


class ActionClip(VectorWrapper):
    """Clips continuous actions to the bounds."""

    def __init__(self, inner: VectorEnv) -> None:
        super().__init__(inner)
        if not isinstance(inner.action_space, spaces.Box):
            raise ConfigError(f"Wrapper 'action_clip' needs a Box action space, this env has {inner.action_space}.")
        self._low, self._high = inner.action_space.low, inner.action_space.high

    def send(self, actions: np.ndarray) -> None:
        """Step with clipped actions."""
        self.inner.send(np.clip(actions, self._low, self._high))


class StickyActions(ActionChanger):
    """With some probability the last executed action is executed again (Machado et al. 2018), unless it is masked now."""

    def __init__(self, env: gym.Env, probability: float = 0.25) -> None:
        super().__init__(env)
        self._probability = probability
        self._last: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """The first action of an episode is always the chosen one."""
        self._last = None
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Step:
        """One draw per step, whatever it decides."""
        sticks = self.random.random() < self._probability
        if not sticks or self._last is None or not self.possible(self._last):
            self._last = action
        self.given = []
        return self.pass_on(self._last)

    def save_state(self) -> dict[str, Any]:
        """Generator, mask and last action."""
        return {**super().save_state(), "last": None if self._last is None else plain(self._last)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Generator, mask and last action."""
        super().load_state(state)
        if state["last"] is None:
            self._last = None
        else:
            self._last = _typed(state["last"], self.env.action_space)


class ActionNoise(ActionChanger):
    """Gaussian noise on Box actions, or now and then a random possible action."""

    def __init__(self, env: gym.Env, std: float | None = None, probability: float | None = None) -> None:
        super().__init__(env)
        space = env.action_space
        if is_composite(space):
            raise ConfigError(f"Wrapper 'action_noise' needs actions without parts, this env has {space}.")
        wanted = "std" if isinstance(space, spaces.Box) else "probability"
        if (std is None) == (wanted == "std"):
            raise ConfigError(f"Wrapper 'action_noise' needs {wanted} for the actions of this env, {space}.")
        self.std, self.probability = std, probability

    def step(self, action: Any) -> Step:
        """Replace the action by a random one now and then, and step."""
        self.given = []
        return self.pass_on(self._noisy(action))

    def _noisy(self, action: Any) -> Any:
        space = self.env.action_space
        if self.std is not None:
            assert isinstance(space, spaces.Box)
            noise = self.random.normal(0.0, self.std, space.shape)
            return np.clip(action + noise, space.low, space.high).astype(space.dtype)
        if self.random.random() >= (self.probability or 0.0):
            return action
        mask = None
        if self._mask is not None:
            mask = np.asarray(self._mask, np.bool_)[None]
        return row(executed(random_actions(space, 1, self.random, mask), space), 0)


def _typed(value: Any, space: spaces.Space) -> Any:
    """An action saved as lists and numbers, as the env takes it."""
    if isinstance(space, spaces.Dict):
        return {key: _typed(value[key], part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_typed(item, part) for item, part in zip(value, space.spaces, strict=True))
    if isinstance(space, spaces.Discrete):
        return value
    return np.asarray(value, space.dtype)
