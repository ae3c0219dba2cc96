"""Envs whose whole state is a few attributes and the random generator; and how attributes become plain values."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

FIELDS: dict[str, tuple[str, ...]] = {
    "gymnasium.envs.classic_control.cartpole.CartPoleEnv": ("state", "steps_beyond_terminated"),
    "gymnasium.envs.classic_control.acrobot.AcrobotEnv": ("state",),
    "gymnasium.envs.classic_control.mountain_car.MountainCarEnv": ("state",),
    "gymnasium.envs.classic_control.continuous_mountain_car.Continuous_MountainCarEnv": ("state",),
    "gymnasium.envs.classic_control.pendulum.PendulumEnv": ("state", "last_u"),
    "gymnasium.envs.toy_text.frozen_lake.FrozenLakeEnv": ("s", "lastaction"),
    "gymnasium.envs.toy_text.taxi.TaxiEnv": ("s", "lastaction", "fickle_step", "taxi_orientation"),
    "gymnasium.envs.toy_text.cliffwalking.CliffWalkingEnv": ("s", "lastaction"),
    "gymnasium.envs.toy_text.blackjack.BlackjackEnv": (
        "dealer",
        "player",
        "dealer_top_card_suit",
        "dealer_top_card_value_str",
    ),
    "gymnast.envs.families.bandits.env.BanditEnv": ("state",),
}
"""By the path of the class: what it keeps between steps."""


def class_path(env: gym.Env) -> str:
    """Module and class of the innermost env."""
    cls = type(env.unwrapped)
    return f"{cls.__module__}.{cls.__qualname__}"


def save(env: gym.Env) -> dict[str, Any]:
    """The fields and the generator."""
    bare = env.unwrapped
    fields = {name: plain(getattr(bare, name)) for name in FIELDS[class_path(env)] if hasattr(bare, name)}
    return {"fields": fields, "generator": save_generator(env)}


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Set them."""
    for name, value in state["fields"].items():
        setattr(env.unwrapped, name, restored(value))
    load_generator(env, state["generator"])


def save_generator(env: gym.Env) -> dict[str, Any]:
    """State of the env's numpy generator as JSON values."""
    return dict(env.unwrapped.np_random.bit_generator.state)


def load_generator(env: gym.Env, state: dict[str, Any]) -> None:
    """Restore the env's numpy generator."""
    env.unwrapped.np_random.bit_generator.state = state


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
