"""Envs whose whole state is a few attributes and the random generator; and how attributes become plain values."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.envs.families.family import Snapshot
from gymnast.envs.generators import load_generator, save_generator


def snapshot_of(names: tuple[str, ...]) -> Snapshot:
    """Saves these attributes and the generator, and sets nothing else that a file may name."""

    def save(env: gym.Env) -> dict[str, Any]:
        bare = env.unwrapped
        fields = {name: plain(getattr(bare, name)) for name in names if hasattr(bare, name)}
        return {"fields": fields, "generator": save_generator(env)}

    def load(env: gym.Env, state: dict[str, Any]) -> None:
        for name in names:
            if name in state["fields"]:
                setattr(env.unwrapped, name, restored(state["fields"][name]))
        load_generator(env, state["generator"])

    return Snapshot(save, load)


def plain(value: Any) -> Any:
    """JSON value that remembers numpy types: arrays keep dtype and exact bits (float64 round-trips through repr)."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return {"scalar": value.item(), "dtype": str(value.dtype)}
    if isinstance(value, tuple):
        return {"tuple": [plain(item) for item in value]}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def restored(value: Any) -> Any:
    """The value that `plain` was given."""
    if isinstance(value, dict):
        if "array" in value:
            return np.array(value["array"], dtype=value["dtype"])
        if "scalar" in value:
            return np.dtype(value["dtype"]).type(value["scalar"])
        return tuple(restored(item) for item in value["tuple"])
    if isinstance(value, list):
        return [restored(item) for item in value]
    return value
