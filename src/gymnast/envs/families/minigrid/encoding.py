"""MiniGrid's observations, made such that a network can read them.

An env gives Dict(image, direction, mission). The mission is text and is left out. A cell of the image is three numbers
(kind of object, colour, state of a door) that name things: as they are, colour 5 would be five times colour 1. So each
becomes one plane of zeros and ones per value, 7×7×20 for the usual view. `env.kwargs: {encoding: raw}` keeps the numbers.
State is saved by replay: the rooms are webs of objects, and an episode is short.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium as gym
import minigrid  # registers its envs  # noqa: F401
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

from gymnast.errors import UsageError

ENCODINGS = ("one_hot", "raw")


def prepare(spec: EnvSpec) -> EnvSpec:
    """Make the env through `make`."""
    return dataclasses.replace(
        spec, entry_point=f"{__name__}:make", kwargs={**spec.kwargs, "made_by": spec.entry_point}
    )


def make(made_by: Any, encoding: str = "one_hot", **kwargs: Any) -> gym.Env:
    """The env without its mission text, cells encoded as asked."""
    if encoding not in ENCODINGS:
        raise UsageError(f"MiniGrid's encoding must be one of {', '.join(ENCODINGS)} (got {encoding!r}).")
    create: Any = load_env_creator(made_by) if isinstance(made_by, str) else made_by
    env = WithoutMission(create(**kwargs))
    if encoding == "one_hot":
        return OneHotCells(env)
    return env


class WithoutMission(gym.ObservationWrapper):
    """Leaves the text out."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        parts = env.observation_space.spaces.items()
        self.observation_space = spaces.Dict({key: part for key, part in parts if key != "mission"})

    def observation(self, observation: dict[str, Any]) -> dict[str, Any]:
        """All but the mission."""
        return {key: value for key, value in observation.items() if key != "mission"}


class OneHotCells(gym.ObservationWrapper):
    """One plane of zeros and ones per kind of object, per colour and per door state."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        height, width, _ = env.observation_space["image"].shape  # type: ignore[misc]
        sizes = len(OBJECT_TO_IDX), len(COLOR_TO_IDX), len(STATE_TO_IDX)
        planes: spaces.Space = spaces.Box(0, 1, (height, width, sum(sizes)), np.bool_)
        self.observation_space = spaces.Dict({**env.observation_space.spaces, "image": planes})
        cells = np.arange(height * width).reshape(height, width, 1) * sum(sizes)
        self._starts = cells + np.cumsum([0, *sizes[:-1]])
        """Where, in the planes laid out flat, the values of each cell's three numbers begin."""

    def observation(self, observation: dict[str, Any]) -> dict[str, Any]:
        """Planes instead of numbers."""
        planes = np.zeros(self.observation_space["image"].shape, np.bool_)  # type: ignore[index]
        planes.reshape(-1)[self._starts + observation["image"]] = True
        return {**observation, "image": planes}
