"""Saving and restoring the state of one env exactly, without pickle.

Known envs under known wrappers are saved as they are (`snapshot`), each family by its own file in `families/`. Any other
env is restored by replaying the current episode's actions (`replay.py`), which is exact for envs that are deterministic
given their seed. `deepcopy` and pickle are never used: they silently drop the state of Box2D and MuJoCo envs.

A wrapper is known when it is one of Gymnasium's two or has `save_state` and `load_state` of its own.
"""

from __future__ import annotations

import zlib
from typing import Any, Protocol, cast

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from gymnast.envs.families import fields
from gymnast.envs.families.fields import FIELDS, class_path, load_generator, save_generator
from gymnast.errors import CheckpointError

__all__ = ["class_path", "fingerprint", "layers", "load", "load_generator", "method", "save", "save_generator"]


class Family(Protocol):
    """A file that saves and restores the envs of one family."""

    def save(self, env: gym.Env) -> dict[str, Any]:
        """The bare env's state as a tree of JSON values and arrays."""

    def load(self, env: gym.Env, state: dict[str, Any]) -> None:
        """Continue there; the env has just been reset."""


def family(env: gym.Env) -> Family | None:
    """Who saves the innermost env, or None."""
    path = class_path(env)
    if path in FIELDS:
        return fields
    if path.startswith("gymnasium.envs.mujoco."):
        from gymnast.envs.families import mujoco

        return mujoco
    if path.startswith("gymnast.envs.families.minatar."):
        from gymnast.envs.families import minatar

        return minatar
    if path.startswith("gymnast.envs.families.atari.") and cast(Any, env.unwrapped).can_be_saved:
        from gymnast.envs.families.atari import game

        return game
    return None


def layers(env: gym.Env) -> list[gym.Env]:
    """All layers from the outermost wrapper to the bare env."""
    chain = [env]
    while isinstance(chain[-1], gym.Wrapper):
        chain.append(chain[-1].env)
    return chain


def _saves_itself(layer: gym.Env) -> bool:
    return all(callable(getattr(type(layer), name, None)) for name in ("save_state", "load_state"))


def method(env: gym.Env) -> str:
    """`snapshot` for known envs under known wrappers, else `replay`."""
    known = all(isinstance(layer, (OrderEnforcing, TimeLimit)) or _saves_itself(layer) for layer in layers(env)[:-1])
    return "snapshot" if known and family(env) is not None else "replay"


def save_layers(env: gym.Env) -> list[dict[str, Any]]:
    """What the wrappers keep that can say so, outermost first."""
    return [cast(Any, layer).save_state() for layer in layers(env)[:-1] if _saves_itself(layer)]


def load_layers(env: gym.Env, states: list[dict[str, Any]]) -> None:
    """Restore those wrappers."""
    keeping = [layer for layer in layers(env)[:-1] if _saves_itself(layer)]
    if len(keeping) != len(states):
        raise CheckpointError(
            f"The checkpoint holds the state of {len(states)} wrappers around each env, this run has {len(keeping)}: "
            "resume with the same env.wrappers as the run that was saved."
        )
    for layer, state in zip(keeping, states, strict=True):
        cast(Any, layer).load_state(state)


def save(env: gym.Env) -> dict[str, Any]:
    """Snapshot of a known env (see `method`)."""
    saver = family(env)
    assert saver is not None
    elapsed = [layer._elapsed_steps for layer in layers(env) if isinstance(layer, TimeLimit)]
    return {"class": class_path(env), **saver.save(env), "elapsed": elapsed, "layers": save_layers(env)}


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Restore a snapshot into an env made the same way."""
    saver = family(env)
    if state["class"] != class_path(env) or saver is None:
        raise CheckpointError(
            f"The checkpoint holds the state of a {state['class']}, but this run has a {class_path(env)}."
        )
    env.reset()  # builds whatever the env builds on reset; everything that matters is overwritten below
    saver.load(env, state)
    limits = [layer for layer in layers(env) if isinstance(layer, TimeLimit)]
    for layer, elapsed in zip(limits, state["elapsed"], strict=True):
        layer._elapsed_steps = elapsed
    load_layers(env, state.get("layers", []))


def fingerprint(obs: Any) -> int:
    """Checksum of an observation, to notice an env that does not repeat itself."""
    if isinstance(obs, dict):
        return zlib.crc32(repr([(key, fingerprint(obs[key])) for key in sorted(obs)]).encode())
    if isinstance(obs, tuple):
        return zlib.crc32(repr([fingerprint(part) for part in obs]).encode())
    return zlib.crc32(np.ascontiguousarray(obs).tobytes())
