"""Envs that play the same under every seed are told from those that do not, and looking at them changes nothing."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs

from gymnast.config.schema import EnvConfig
from gymnast.envs.alike import plays_alike, randomness, starts_alike
from gymnast.envs.make import make_envs

FIXED_PONG = {"sticky": 0.0, "noops": 0, "obs": "ram"}
ALIKE: dict[str, dict[str, Any]] = {
    "FrozenLake, not slippery": {"id": "FrozenLake-v1", "kwargs": {"is_slippery": False}},
    "CliffWalking": {"id": "CliffWalking-v1"},
    "MiniGrid-Empty": {"id": "MiniGrid-Empty-5x5-v0"},
    "a bandit without chance": {"id": "gymnast/Bandit-v0", "kwargs": {"means": [0.0, 1.0]}},
    "Pong without chance": {"id": "ALE/Pong-v5", "atari": FIXED_PONG},
    "ended by a limit": {"id": "CliffWalking-v1", "time_limit": 5},
}
DIFFERENT: dict[str, dict[str, Any]] = {
    "FrozenLake": {"id": "FrozenLake-v1"},
    "CliffWalking, slippery": {"id": "CliffWalking-v1", "kwargs": {"is_slippery": True}},
    "CartPole": {"id": "CartPole-v1"},
    "Blackjack": {"id": "Blackjack-v1"},
    "Taxi": {"id": "Taxi-v4"},
    "Bandit": {"id": "gymnast/Bandit-v0"},
    "RandomBandit": {"id": "gymnast/RandomBandit-v0"},
    "MinAtar": {"id": "MinAtar/Breakout-v1"},
    "DoorKey": {"id": "MiniGrid-DoorKey-5x5-v0"},
    "Pong": {"id": "ALE/Pong-v5", "atari": {"obs": "ram"}},
    "Pong, sticky": {"id": "ALE/Pong-v5", "atari": {**FIXED_PONG, "sticky": 0.25}},
    "Pong, random beginnings": {"id": "ALE/Pong-v5", "atari": {**FIXED_PONG, "noops": 30}},
    "noise in a wrapper": {
        "id": "CliffWalking-v1",
        "wrappers": [{"id": "one_hot"}, {"id": "observation_noise", "std": 0.1}],
    },
    "actions disturbed": {"id": "CliffWalking-v1", "wrappers": [{"id": "sticky_actions", "probability": 0.25}]},
}


def section(env: dict[str, Any]) -> EnvConfig:
    """The env section, where its package is installed."""
    package = {"ALE": "ale_py", "Min": "minatar", "Mini": "minigrid"}
    for start, name in package.items():
        if env["id"].startswith(start + ("/" if start == "ALE" else "")):
            pytest.importorskip(name)
    return EnvConfig.model_validate(env)


@pytest.mark.parametrize("name", ALIKE)
def test_one_course_of_events(name: str) -> None:
    config = section(ALIKE[name])
    assert plays_alike(config)
    assert first_rows_alike(config)


@pytest.mark.parametrize("name", DIFFERENT)
def test_chance_is_found(name: str) -> None:
    assert not plays_alike(section(DIFFERENT[name]))


def first_rows_alike(config: EnvConfig) -> bool:
    envs = make_envs(config.model_copy(update={"vectorization": "inprocess"}), 3)
    row = envs.new_row()
    envs.reset([5, 6, 7], row)
    envs.close()
    return starts_alike(row.obs)


def test_different_beginnings_need_no_look() -> None:
    """What the slots of a run begin with settles it for most envs; parts of an observation count too."""
    assert not first_rows_alike(EnvConfig(id="CartPole-v1"))
    assert not first_rows_alike(EnvConfig(id="DictIdentity-v0"))
    assert starts_alike({"a": np.zeros((3, 2)), "b": np.ones(3)})
    assert not starts_alike({"a": np.zeros((3, 2)), "b": np.arange(3)})


class Sharing(gym.Env):
    """Draws from the generators of the whole process."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """From both of them."""
        return np.array([random.random() * np.random.random()]), {}  # noqa: NPY002

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """From both of them."""
        return self.reset()[0], 0.0, False, False, {}


def test_generators_of_the_process_stay_where_they_are() -> None:
    gym.register("Sharing-v0", Sharing)
    try:
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        expected = random.random(), np.random.random()  # noqa: NPY002
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        assert not plays_alike(EnvConfig(id="Sharing-v0"))
        assert (random.random(), np.random.random()) == expected  # noqa: NPY002
    finally:
        del gym.registry["Sharing-v0"]


def test_an_env_that_fails_is_not_spoken_of_here() -> None:
    assert not plays_alike(EnvConfig(id="Faulty-v0", kwargs={"how": "crash"}))
    assert not plays_alike(EnvConfig(id="CartPole-v1", kwargs={"no_such": 1}))


def test_advice_names_settings_that_exist() -> None:
    pong = EnvConfig.model_validate({"id": "ALE/Pong-v5", "atari": FIXED_PONG})
    for setting in randomness(pong).split():
        key, _, value = setting.removeprefix("env.atari.").partition("=")
        assert getattr(pong.atari, key) != float(value)
    assert randomness(EnvConfig(id="CliffWalking-v1")) == "env.kwargs.is_slippery=true"
    assert "np_random" in randomness(EnvConfig(id="Walk-v0"))
