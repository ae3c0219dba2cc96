"""Drawing with SDL: the dummy driver only where there is no display and the env is known to draw the same under it."""

from __future__ import annotations

import os

import gymnasium as gym
import pytest
import small_envs  # noqa: F401 - registers the envs

from gymnast.config.schema import EnvConfig
from gymnast.envs.drawing import DRIVER, advice_for, drawing, why_black
from gymnast.envs.make import make_envs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="displays are named in the environment on Linux alone")


@pytest.fixture(autouse=True)
def _bare_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """No display, and nothing said about SDL."""
    for name in (DRIVER, "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("env_id", "given", "inside"),
    [
        ("CartPole-v1", {}, "dummy"),
        ("FrozenLake-v1", {}, "dummy"),
        ("CartPole-v1", {"DISPLAY": ":0"}, None),
        ("CartPole-v1", {"WAYLAND_DISPLAY": "wayland-0"}, None),
        ("CartPole-v1", {DRIVER: "x11"}, "x11"),
        ("Screen-v0", {}, None),
        ("Screen-v0", {DRIVER: "dummy"}, "dummy"),
    ],
)
def test_the_driver_is_named_only_where_it_must_be(
    env_id: str, given: dict[str, str], inside: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And afterwards the environment is as it was."""
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with drawing(gym.spec(env_id)):
        assert os.environ.get(DRIVER) == inside
    assert os.environ.get(DRIVER) == given.get(DRIVER)


def test_an_env_that_draws_nothing_under_the_dummy_driver() -> None:
    """It gets SDL as it is, which draws into memory where there is no display."""
    config = EnvConfig.model_validate({"id": "Screen-v0"})
    envs = make_envs(config, 1, render_mode="rgb_array")
    try:
        envs.reset([1], envs.new_row())
        with drawing(gym.spec("Screen-v0")):
            picture = envs.render(0)
    finally:
        envs.close()
    assert picture is not None
    assert picture[0, 0].tolist() == [200, 0, 0]


def test_why_pictures_may_be_black(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where it is the user who named the driver."""
    assert why_black() == ""
    monkeypatch.setenv(DRIVER, "dummy")
    assert "unset it" in why_black()


def test_advice_where_sdl_finds_no_driver() -> None:
    """What SDL says when it has no driver of its own for memory."""
    assert f"set {DRIVER}=offscreen" in advice_for(RuntimeError("No available video device"))
    assert advice_for(RuntimeError("the simulator exploded")) == ""
