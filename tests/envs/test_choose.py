"""`env.vectorization: auto`: what it chooses, and why (ENV-11)."""

from __future__ import annotations

import sys
import time
from typing import Any

import gymnasium as gym
import pytest
import small_envs

from gymnast.config.load import Resolved, validate
from gymnast.config.schema import EnvConfig
from gymnast.envs import choose, parity
from gymnast.envs.choose import choose_vectorization, playable, with_vectorization
from gymnast.envs.parity import ParityRow, ParityTable

ROWS = [
    ParityRow("LunarLander-v3", {}, "LunarLander-v3", defaults={"continuous": False}, verdict="pass"),
    ParityRow("LunarLander-v3", {"continuous": True}, "LunarLanderContinuous-v3", verdict="pass"),
    ParityRow("FrozenLake-v1", {"map_name": "4x4"}, "FrozenLake-v1", defaults={"is_slippery": True}, verdict="pass"),
    ParityRow("CartPole-v1", {}, "CartPole-v1", verdict="pass"),
    ParityRow("Taxi-v4", {}, "Taxi-v3", action_masks=True, verdict="pass"),
    ParityRow("Pendulum-v1", {}, "Pendulum-v1", verdict="fail", reasons=["returns: p 1e-09"]),
]


class Slow(small_envs.Counting):
    """A simulator."""

    def step(self, action: Any) -> Any:
        """Takes its time."""
        time.sleep(0.002)
        return super().step(action)


class Broken(small_envs.Counting):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")


@pytest.fixture(autouse=True)
def _world(monkeypatch: pytest.MonkeyPatch) -> None:
    """EnvPool 9.9 installed and tested, two cores, and envs that no table knows."""
    monkeypatch.setattr(parity, "installed_version", lambda: "9.9")
    monkeypatch.setattr(parity, "load", lambda: ParityTable("9.9", "1.4", ROWS))
    monkeypatch.setattr(choose, "cores", lambda: 2)
    choose._measured_milliseconds.cache_clear()
    for kind in (Slow, Broken):
        monkeypatch.setitem(
            gym.registry, f"{kind.__name__}-v0", gym.spec("Counting-v0").__class__(f"{kind.__name__}-v0", kind)
        )


def chosen(env_id: str, **section: Any) -> str:
    """Only the way."""
    return choose_vectorization(EnvConfig(id=env_id, **section))[0]


def reason(env_id: str, **section: Any) -> str:
    """Only the reason."""
    return choose_vectorization(EnvConfig(id=env_id, **section))[1]


def test_native_before_envpool_before_the_rest() -> None:
    """CartPole is in the table too, but has a native form; FrozenLake with its defaults spelled out is the same env."""
    assert chosen("CartPole-v1") == "native"
    assert chosen("LunarLander-v3") == "envpool"
    assert chosen("LunarLander-v3", kwargs={"continuous": False}) == "envpool"
    assert chosen("LunarLander-v3", kwargs={"continuous": True}) == "envpool"
    assert chosen("FrozenLake-v1", kwargs={"is_slippery": True}) == "envpool"
    assert chosen("Acrobot-v1") == "inprocess"
    assert chosen("CarRacing-v3") == "workers"
    assert "9.9" in reason("LunarLander-v3")


@pytest.mark.parametrize(
    ("env_id", "section", "why"),
    [
        ("LunarLander-v3", {"kwargs": {"enable_wind": True}}, "too little for worker processes"),
        ("FrozenLake-v1", {"kwargs": {"is_slippery": False}}, "too little for worker processes"),
        ("Pendulum-v1", {}, "EnvPool's Pendulum-v1 is not the same env \\(returns: p 1e-09\\)"),
        ("Taxi-v4", {}, "gives no action masks \\(env.action_mask=off ignores them\\)"),
        ("LunarLander-v3", {"module": "gymnasium"}, "too little for worker processes"),
        (
            "LunarLander-v3",
            {"wrappers": [{"id": "frame_skip", "skip": 2}]},
            "wrapper 'frame_skip' runs around each env",
        ),
    ],
)
def test_what_the_table_does_not_allow(env_id: str, section: dict[str, Any], why: str) -> None:
    """Other arguments, a failed row, masks that would be lost, wrappers beside each env."""
    kind, said = choose_vectorization(EnvConfig(id=env_id, **section))
    assert kind == "inprocess"
    assert __import__("re").search(why, said), said


def test_masks_can_be_done_without() -> None:
    """Then EnvPool's Taxi is the same."""
    assert chosen("Taxi-v4", action_mask="off") == "envpool"


@pytest.mark.parametrize(("version", "why"), [(None, "pip install"), ("9.10", "EnvPool 9.10 is not tested here")])
def test_another_version_or_none(version: str | None, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tested version is chosen."""
    monkeypatch.setattr(parity, "installed_version", lambda: version)
    assert chosen("LunarLander-v3") == "inprocess"
    assert why in reason("LunarLander-v3")


def test_what_is_configured_is_done() -> None:
    """Also against the table."""
    for kind in ("native", "envpool", "inprocess", "workers"):
        assert choose_vectorization(EnvConfig(id="Pendulum-v1", vectorization=kind)) == (kind, "as configured")


def test_a_trained_policy_is_played_without_envpool_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run needs the way it was trained with; an evaluation of its weights does not."""
    config = EnvConfig(id="LunarLander-v3", vectorization="envpool")
    assert playable(config) == config
    monkeypatch.setattr(parity, "installed_version", lambda: None)
    assert chosen("LunarLander-v3", vectorization=playable(config).vectorization) == "inprocess"


def test_unknown_envs_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow one is worth workers, not with one core or one env; one that fails is left to say so itself."""
    assert chosen("Slow-v0") == "workers"
    assert "a step takes about" in reason("Slow-v0")
    assert chosen("Counting-v0") == "inprocess"
    assert chosen("Slow-v0", n_envs=1) == "inprocess"
    assert chosen("Broken-v0") == "inprocess"
    assert "could not be measured" in reason("Broken-v0")
    monkeypatch.setattr(choose, "cores", lambda: 1)
    assert chosen("Slow-v0") == "inprocess"


def test_known_envs_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No env is made to decide about them."""
    monkeypatch.setattr(gym, "make", lambda *args, **kwargs: pytest.fail("an env was made"))
    for env_id in ("Acrobot-v1", "LunarLander-v3", "Taxi-v4", "CarRacing-v3", "CartPole-v1"):
        choose_vectorization(EnvConfig(id=env_id))


def test_under_a_debugger_everything_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debugger sees one process and one thread."""
    monkeypatch.setattr(sys, "gettrace", lambda: test_under_a_debugger_everything_is_here)
    assert choose_vectorization(EnvConfig(id="LunarLander-v3")) == ("inprocess", "a debugger is attached")
    assert chosen("Slow-v0") == "inprocess"
    assert chosen("LunarLander-v3", vectorization="workers") == "inprocess"


def resolved(env_steps: int = 1_000_000, **env: Any) -> Resolved:
    """A whole config."""
    data = {"env": {"id": "LunarLander-v3", **env}, "algo": {"id": "ppo"}, "train": {"env_steps": env_steps}}
    return Resolved(validate(data, {}))


def test_no_budget_is_too_small_for_its_episodes() -> None:
    """A twentieth of the budget lies between two resets at most: where no episode could end in that, EnvPool stays out.

    With 100,000 steps of 64 landers, every episode was cut after 64 steps, and none ever came to rest.
    """
    small = {"n_envs": 64, "time_limit": 500}
    for env_steps, kind in ((100_000, "inprocess"), (400_000, "inprocess"), (1_000_000, "envpool")):
        settled = with_vectorization(resolved(env_steps, **small))
        assert settled.config.env.vectorization == kind, env_steps
        assert ("cut episodes that may last 500" in settled.origins["env.vectorization"]) == (kind == "inprocess")
    stated = with_vectorization(resolved(100_000, **small, resume_every=64 * 500))
    assert stated.config.env.vectorization == "envpool"


def test_the_saved_config_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a resume elsewhere cannot go another way; a run saved with `auto` was never EnvPool's."""
    settled = with_vectorization(resolved())
    assert settled.config.env.vectorization == "envpool"
    assert settled.origins["env.vectorization"].startswith("auto: EnvPool 9.9")
    monkeypatch.setattr(parity, "installed_version", lambda: None)
    assert with_vectorization(settled).config.env.vectorization == "envpool"
    monkeypatch.setattr(parity, "installed_version", lambda: "9.9")
    assert with_vectorization(resolved(), saved="auto").config.env.vectorization == "inprocess"
    assert with_vectorization(resolved(), saved="envpool").config.env.vectorization == "envpool"
    assert (
        with_vectorization(resolved(vectorization="inprocess"), saved="envpool").config.env.vectorization == "inprocess"
    )
    assert with_vectorization(resolved(vectorization="workers")).origins == {}
