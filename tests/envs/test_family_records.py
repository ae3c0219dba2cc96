"""The records of env families: light to read, true about the packages they name, and one per env."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from contextlib import closing
from typing import Any

import gymnasium as gym
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs import snapshots
from gymnast.envs.choose import native_engine, native_form, why_not_native
from gymnast.envs.families import SHIPPED, class_path, family_of, shipped_family
from gymnast.envs.families.family import Family
from gymnast.envs.make import make_one
from gymnast.envs.registry import env_spec, family_of_config, missing_package, rules_of
from gymnast.errors import CheckpointError

HEAVY = ("torch", "numpy", "gymnasium", "pydantic", "ale_py", "mujoco", "Box2D", "minatar", "minigrid", "vizdoom")
IDS = {
    "CartPole-v1": "classic",
    "Taxi-v4": "toy_text",
    "LunarLander-v3": "box2d",
    "CarRacing-v3": "box2d",
    "Hopper-v5": "mujoco",
    "ALE/Pong-v5": "atari",
    "MinAtar/Breakout-v1": "minatar",
    "MiniGrid-Empty-5x5-v0": "minigrid",
    "BabyAI-GoToObj-v0": "minigrid",
    "VizdoomBasic-v1": "vizdoom",
    "VizdoomDoom-v1": "vizdoom",
    "gymnast/Bandit-v0": "bandits",
}


def test_reading_the_records_imports_nothing_heavy() -> None:
    """Commands that list things and worker processes read them."""
    code = f"import sys, gymnast.envs.families\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("env_id", IDS)
def test_every_env_has_one_record(env_id: str) -> None:
    """By where it is defined, and by the start of its id where that tells it."""
    family = family_of(env_spec(env_id))
    assert family is not None and family.name == IDS[env_id]
    assert shipped_family(env_id) is (family if family.prefixes else None)
    assert family_of_config(EnvConfig(id=env_id)) is family


@pytest.mark.parametrize("family", SHIPPED, ids=lambda family: family.name)
def test_what_a_record_names_is_there(family: Family) -> None:
    """Modules, and the attributes of the classes that are saved by them."""
    for module in (*family.homes, *family.preload, *family.slower, *filter(None, [family.registers])):
        assert importlib.util.find_spec(module) is not None, module
    for path in (*family.fields, *family.former_classes.values()):
        module, _, name = path.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), name), type), path
    assert family.package is None or importlib.util.find_spec(family.package.module) is not None


@pytest.mark.parametrize(
    ("env_id", "where", "cost"),
    [
        ("CarRacing-v3", "gymnasium.envs.box2d.car_racing.CarRacing", 4.0),
        ("LunarLander-v3", "gymnasium.envs.box2d.lunar_lander.LunarLander", 0.04),
        ("LunarLander-v3", "gymnasium.envs.box2d.car_racing_by_night.Car", 0.04),
    ],
)
def test_slow_modules_of_a_family(env_id: str, where: str, cost: float) -> None:
    family = family_of_config(EnvConfig(id=env_id))
    assert family is not None and family.milliseconds(where) == cost


def test_an_env_of_nobody_we_know() -> None:
    gym.register("Nobody-v0", lambda: gym.make("CartPole-v1").unwrapped)
    try:
        assert family_of_config(EnvConfig(id="Nobody-v0")) is None
        assert rules_of(EnvConfig(id="Nobody-v0")) is None and native_form(EnvConfig(id="Nobody-v0")) is None
    finally:
        del gym.registry["Nobody-v0"]


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"id": "Acrobot-v1"}, ""),
        ({"id": "CartPole-v1", "kwargs": {"render_mode": None}}, "it does not take env.kwargs.render_mode"),
        ({"id": "CartPole-v1", "wrappers": [{"id": "time_limit", "steps": 9}]}, ""),
        ({"id": "gymnast/Bandit-v0", "kwargs": {"arms": -1}}, "the env refuses these env.kwargs"),
        ({"id": "ALE/Pong-v5", "atari": {"obs": "ram"}}, "gives pixels only, env.atari.obs is ram"),
    ],
)
def test_why_there_is_no_native_form(section: dict[str, Any], why: str) -> None:
    assert why in why_not_native(EnvConfig(**section))


def test_engines_of_others_are_named() -> None:
    """Only where the episodes are other ones than those of single envs."""
    assert str(native_engine(EnvConfig(id="ALE/Pong-v5"))).startswith("ALE's vector env (ale-py ")
    assert native_engine(EnvConfig(id="CartPole-v1")) is None


def test_only_optional_packages_are_called_missing() -> None:
    """What Gymnasium says of its own classic control (pygame for drawing) is told as it is."""
    spec = env_spec("CartPole-v1")
    assert missing_package(family_of(spec), spec.id) is None
    assert "gymnast[box2d]" in str(missing_package(family_of(env_spec("LunarLander-v3")), "LunarLander-v3"))


def test_a_checkpoint_from_before_a_class_was_moved() -> None:
    """It is loaded; one of a class that was never this one is refused."""
    with closing(make_one(EnvConfig(id="MinAtar/Breakout-v1"))) as env:
        env.reset(seed=3)
        state = snapshots.save(env)
        following = env.step(1)[0]
        assert state["class"] == class_path(env) == "gymnast.envs.families.minatar.games.MinAtarEnv"
        snapshots.load(env, {**state, "class": "gymnast.envs.families.minatar.MinAtarEnv"})
        assert (env.step(1)[0] == following).all()
        with pytest.raises(CheckpointError, match="holds the state of a other.Env, but this run has"):
            snapshots.load(env, {**state, "class": "other.Env"})
