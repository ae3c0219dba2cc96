"""Saving and restoring the state of one env exactly, without pickle.

Known envs under known wrappers are saved as they are (`snapshot`), as the record of their family in `families/` says. Any other
env is restored by replaying the current episode's actions (`replay.py`), which is exact for envs that are deterministic
given their seed. `deepcopy` and pickle are never used: they silently drop the state of Box2D and MuJoCo envs.

A wrapper is known when it is one of Gymnasium's two or has `save_state` and `load_state` of its own.
"""

from __future__ import annotations

import zlib
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from gymnast.envs.conformity import as_array
from gymnast.envs.families import class_path, family_of_env, fields
from gymnast.envs.families.family import Snapshot
from gymnast.envs.generators import load_generator, save_generator
from gymnast.errors import CheckpointError

__all__ = ["class_path", "fingerprint", "layers", "load", "load_generator", "method", "save", "save_generator"]


def _snapshot_of(env: gym.Env) -> Snapshot | None:
    """How the innermost env is saved, where its family says so."""
    family = family_of_env(env)
    if family is None:
        return None
    if names := family.fields.get(class_path(env)):
        return fields.snapshot_of(names)
    if family.snapshot is None:
        return None
    return family.snapshot(env)


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
    if any(getattr(layer, "remakes", False) for layer in layers(env)[:-1] if _saves_itself(layer)):
        return "replay"  # every episode has an env of its own
    if known and _snapshot_of(env) is not None:
        return "snapshot"
    return "replay"


def save_layers(env: gym.Env) -> list[dict[str, Any]]:
    """What the wrappers keep that can say so, outermost first."""
    return [cast(Any, layer).save_state() for layer in layers(env)[:-1] if _saves_itself(layer)]


def load_layers(env: gym.Env, states: list[dict[str, Any]]) -> None:
    """Restore the wrappers that keep state, outermost first as they were saved."""
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
    snapshot = _snapshot_of(env)
    assert snapshot is not None
    elapsed = [layer._elapsed_steps for layer in layers(env) if isinstance(layer, TimeLimit)]
    return {"class": class_path(env), **snapshot.save(env), "elapsed": elapsed, "layers": save_layers(env)}


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Restore a snapshot into an env made the same way."""
    family, snapshot = family_of_env(env), _snapshot_of(env)
    saved = str(state["class"])
    if family is not None:
        saved = family.former_classes.get(saved, saved)
    if saved != class_path(env) or snapshot is None:
        raise CheckpointError(f"The checkpoint holds the state of a {saved}, but this run has a {class_path(env)}.")
    env.reset()  # builds whatever the env builds on reset; everything that matters is overwritten below
    snapshot.load(env, state)
    limits = [layer for layer in layers(env) if isinstance(layer, TimeLimit)]
    for layer, elapsed in zip(limits, state["elapsed"], strict=True):
        layer._elapsed_steps = None if elapsed is None else int(elapsed)  # type: ignore[assignment]
    load_layers(env, state.get("layers", []))


def fingerprint(obs: Any) -> int:
    """Checksum of an observation, to notice an env that does not repeat itself."""
    if isinstance(obs, dict):
        return zlib.crc32(repr([(key, fingerprint(obs[key])) for key in sorted(obs)]).encode())
    if isinstance(obs, tuple):
        return zlib.crc32(repr([fingerprint(part) for part in obs]).encode())
    array = as_array(obs)
    if array is None:  # a list of unlike parts
        return fingerprint(tuple(obs))
    if array.dtype == object:  # its bytes are addresses
        return zlib.crc32(repr(obs).encode())
    return zlib.crc32(np.ascontiguousarray(array).tobytes())
