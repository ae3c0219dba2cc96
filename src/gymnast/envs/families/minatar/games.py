"""The games of MinAtar: exact state, seeded resets that repeat themselves, and pictures without a plotting library.

The package imports seaborn, pandas and matplotlib (2.6 s) only to open windows; here it is imported without them.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from gymnast.envs.families.fields import plain, restored


@contextmanager
def _without_plotting() -> Iterator[None]:
    hidden = [name for name in ("seaborn", "matplotlib") if name not in sys.modules]
    handlers, disabled = list(logging.root.handlers), logging.root.manager.disable
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type] # None lets the import fail at once
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)
        logging.root.handlers[:] = handlers  # its warning about the missing package sets up logging for all of us
        for name in hidden:
            del sys.modules[name]


with _without_plotting():
    from minatar.gym import BaseEnv, register_envs

CONSTANT = ("channels", "action_map", "random", "ramping")
"""Attributes of a game that never change, and the generator, which is saved by itself."""

if "MinAtar/Breakout-v0" not in gym.registry:
    register_envs()


class MinAtarEnv(BaseEnv):  # type: ignore[misc]  # the package has no types
    """The package's env, repeatable: a seed also forgets the last action, which sticky actions might repeat."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 - Gymnasium's own form

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a new game; a seed also forgets the last action, which sticky actions would repeat."""
        if seed is not None:
            self.game.last_action = 0
        first: tuple[np.ndarray, dict[str, Any]] = super().reset(seed, options)
        return first

    def render(self) -> np.ndarray | None:
        """One pixel per cell in the colours of the package's own window."""
        if self.render_mode != "rgb_array":
            return None
        state = self.game.state()
        top = np.where(state, np.arange(1, state.shape[-1] + 1), 0).max(-1)
        picture: np.ndarray = _palette(state.shape[-1])[top]
        return picture


def _palette(n: int) -> np.ndarray:
    """Black, then n colours of D. Green's cubehelix (2011) as seaborn and matplotlib mix them; [n + 1, 3] uint8."""
    x = np.linspace(0, 1, n + 2)[1:-1]
    angle = 2 * np.pi * (0.5 / 3 - 1.5 * x)
    amplitude = x * (1 - x) / 2
    colour = [
        x + amplitude * (a * np.cos(angle) + b * np.sin(angle))
        for a, b in ((-0.14861, 1.78277), (-0.29227, -0.90649), (1.97294, 0.0))
    ]
    return np.vstack([np.zeros((1, 3)), np.clip(np.stack(colour, -1), 0, 1) * 255]).round().astype(np.uint8)


def prepare(spec: EnvSpec) -> EnvSpec:
    """Make ours instead of the package's."""
    return dataclasses.replace(spec, entry_point=f"{__name__}:{MinAtarEnv.__name__}")


def save(env: gym.Env) -> dict[str, Any]:
    """The game's fields, the last action (sticky actions repeat it) and both generators, which are one after a seed."""
    game = env.unwrapped.game  # type: ignore[attr-defined]
    fields = {name: plain(value) for name, value in vars(game.env).items() if name not in CONSTANT}
    return {
        "fields": fields,
        "last_action": plain(game.last_action),
        "generator": game.random.get_state(legacy=False),
        "own_generator": None if game.env.random is game.random else game.env.random.get_state(legacy=False),
    }


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Put a saved state back into the game; the counterpart of `save`."""
    game = env.unwrapped.game  # type: ignore[attr-defined]
    for name, value in state["fields"].items():
        setattr(game.env, name, restored(value))
    game.last_action = restored(state["last_action"])
    game.random = _generator(state["generator"])
    own = state["own_generator"]
    game.env.random = game.random if own is None else _generator(own)


def _generator(state: dict[str, Any]) -> np.random.RandomState:
    made = np.random.RandomState()
    made.set_state({**state, "state": {**state["state"], "key": np.asarray(state["state"]["key"], np.uint32)}})
    return made
