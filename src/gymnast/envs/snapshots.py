"""Saving and restoring the state of one env exactly, without pickle.

Known classes are saved by their fields (`snapshot`). Any other env is restored by replaying the current episode's
actions from the generator state it was reset with (`replay`), which is exact for deterministic-given-seed envs.
`deepcopy` and pickle are never used: they silently drop the state of Box2D and MuJoCo envs.
"""

from __future__ import annotations

import zlib
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from gymnast.envs.actions import converter, is_composite
from gymnast.errors import CheckpointError

# Fields that, with the random generator, are the whole state of an env of that class.
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
}


def class_path(env: gym.Env) -> str:
    """Module and class of the innermost env."""
    cls = type(env.unwrapped)
    return f"{cls.__module__}.{cls.__qualname__}"


def layers(env: gym.Env) -> list[gym.Env]:
    """All layers from the outermost wrapper to the bare env."""
    chain = [env]
    while isinstance(chain[-1], gym.Wrapper):
        chain.append(chain[-1].env)
    return chain


def method(env: gym.Env) -> str:
    """`snapshot` for known envs under known wrappers, else `replay`."""
    known = all(isinstance(layer, (OrderEnforcing, TimeLimit)) for layer in layers(env)[:-1])
    return "snapshot" if known and class_path(env) in FIELDS else "replay"


def save_generator(env: gym.Env) -> dict[str, Any]:
    """State of the env's numpy generator as JSON values."""
    return dict(env.unwrapped.np_random.bit_generator.state)


def load_generator(env: gym.Env, state: dict[str, Any]) -> None:
    """Restore the env's numpy generator."""
    env.unwrapped.np_random.bit_generator.state = state


def save(env: gym.Env) -> dict[str, Any]:
    """Snapshot of a known env (see `method`)."""
    bare = env.unwrapped
    fields = {name: _plain(getattr(bare, name)) for name in FIELDS[class_path(env)] if hasattr(bare, name)}
    elapsed = [layer._elapsed_steps for layer in layers(env) if isinstance(layer, TimeLimit)]
    return {"class": class_path(env), "fields": fields, "elapsed": elapsed, "generator": save_generator(env)}


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Restore a snapshot into an env made the same way."""
    if state["class"] != class_path(env):
        raise CheckpointError(
            f"The checkpoint holds the state of a {state['class']}, but this run has a {class_path(env)}."
        )
    env.reset()  # builds whatever the env builds on reset; everything that matters is overwritten below
    for name, value in state["fields"].items():
        setattr(env.unwrapped, name, _restored(value))
    limits = [layer for layer in layers(env) if isinstance(layer, TimeLimit)]
    for layer, elapsed in zip(limits, state["elapsed"], strict=True):
        layer._elapsed_steps = elapsed
    load_generator(env, state["generator"])


def replay(env: gym.Env, state: dict[str, Any]) -> tuple[Any, bool]:
    """Restore by repeating the episode from its reset; gives the last observation and whether it is the saved one."""
    obs, _ = env.reset(seed=state["seed"])
    if state["generator_at_reset"] is not None:  # a later episode, reset without a seed
        load_generator(env, state["generator_at_reset"])
        obs, _ = env.reset()
    ended = False
    for action in state["actions"]:
        obs, _, terminated, truncated, _ = env.step(_recorded(action, env.action_space))
        if ended := bool(terminated or truncated):  # the saved episode was still running
            obs, _ = env.reset()
            break
    load_generator(env, state["generator"])
    return obs, not ended and fingerprint(obs) == state["fingerprint"]


def _recorded(action: Any, space: spaces.Space) -> Any:
    """A recorded action as the env takes it: parts of Dict and Tuple actions are kept as the policy's row of floats."""
    if is_composite(space):
        return converter(space)(np.asarray([action], np.float32))[0]
    if isinstance(space, spaces.Box) or isinstance(action, list):
        return np.asarray(action, space.dtype)
    return action


def fingerprint(obs: Any) -> int:
    """Checksum of an observation, to notice an env that does not repeat itself."""
    if isinstance(obs, dict):
        return zlib.crc32(repr([(key, fingerprint(obs[key])) for key in sorted(obs)]).encode())
    if isinstance(obs, tuple):
        return zlib.crc32(repr([fingerprint(part) for part in obs]).encode())
    return zlib.crc32(np.ascontiguousarray(obs).tobytes())


def _plain(value: Any) -> Any:
    """JSON value that remembers numpy types: arrays keep dtype and exact bits (float64 round-trips through repr)."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return {"scalar": value.item(), "dtype": str(value.dtype)}
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if "array" in value:
            return np.array(value["array"], dtype=value["dtype"])
        if "scalar" in value:
            return np.dtype(value["dtype"]).type(value["scalar"])
        return tuple(_restored(item) for item in value["tuple"])
    if isinstance(value, list):
        return [_restored(item) for item in value]
    return value
