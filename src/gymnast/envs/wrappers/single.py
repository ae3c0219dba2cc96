"""Wrappers of one env: they run around it, in a worker process too, and what they keep is saved with it.

`envs/snapshots.py` saves a layer that has `save_state` and `load_state`. Randomness is a generator of each layer's own,
seeded with the env: it does not depend on the number of envs or of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs.wrappers.generators import seeded
from gymnast.envs.wrappers.masks import is_possible

Reset = tuple[Any, dict[str, Any]]
Step = tuple[Any, float, bool, bool, dict[str, Any]]


class SingleEnvWrapper(gym.Wrapper):
    """A wrapper of ours around one env; keeps nothing unless a subclass does."""

    def save_state(self) -> dict[str, Any]:
        """What this layer keeps, as JSON values and arrays."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue where `save_state` was called."""


class RandomWrapper(SingleEnvWrapper):
    """Has a generator of its own."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._place = sum(isinstance(layer, RandomWrapper) for layer in _layers(env))
        self.random = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """A seed restarts the generator."""
        if seed is not None:
            self.random = seeded(seed, self._place)
        return self.env.reset(seed=seed, options=options)

    def save_state(self) -> dict[str, Any]:
        """The state of its generator."""
        return {"generator": dict(self.random.bit_generator.state)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state of its generator."""
        self.random.bit_generator.state = state["generator"]


class ActionChanger(RandomWrapper):
    """Gives the env other actions than it is given itself, and remembers which."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.given: list[Any] = []
        """Every action the bare env was given in the last step."""
        self._below = next((layer for layer in _layers(env) if isinstance(layer, ActionChanger)), None)
        self._mask: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Note the first mask."""
        obs, info = super().reset(seed=seed, options=options)
        self._mask = info.get("action_mask")
        return obs, info

    def pass_on(self, action: Any) -> Step:
        """Step the env below and note what it was given."""
        step = self.env.step(action)
        self.given += [action] if self._below is None else self._below.given
        self._mask = step[4].get("action_mask")
        return step  # type: ignore[return-value]

    def possible(self, action: Any) -> bool:
        """Whether the env's mask allows the action."""
        return self._mask is None or is_possible(action, self._mask, self.env.action_space)

    def save_state(self) -> dict[str, Any]:
        """The generator and the mask."""
        return {**super().save_state(), "mask": None if self._mask is None else np.asarray(self._mask).copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        """The generator and the mask."""
        super().load_state(state)
        self._mask = state["mask"]


def executed_by(env: gym.Env) -> list[Any] | None:
    """What the bare env was given in the last step; None if no wrapper changes actions."""
    return next((layer.given for layer in _layers(env) if isinstance(layer, ActionChanger)), None)


def _layers(env: gym.Env) -> Iterator[gym.Env]:
    """From the outside to the bare env."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env
