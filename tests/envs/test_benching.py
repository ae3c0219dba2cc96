"""Which ways are measured, and which of them is recommended. No speeds are asserted: they depend on the machine."""

from __future__ import annotations

import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs import benching
from gymnast.envs.benching import Measurement, Setting, bench, recommend, ways
from gymnast.errors import UsageError


def measured(*rates: tuple[int, float], kind: str = "inprocess") -> list[Measurement]:
    """Measurements of one way."""
    return [Measurement(Setting(kind, n_envs), rate) for n_envs, rate in rates]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        # A slow env that gets no faster: the fewest that give different samples.
        ([(1, 1000), (8, 1000), (16, 1000), (64, 1010)], 8),
        # One that gains with every copy, and is what training waits for.
        ([(8, 1000), (16, 2000), (32, 4000), (64, 8000)], 64),
        # Far faster than a network learns from it: more copies would only make updates rarer.
        ([(8, 2e6), (16, 4e6), (32, 8e6), (64, 16e6), (128, 32e6)], 32),
        # Nothing but small numbers was tried.
        ([(1, 1000), (2, 5000), (4, 5100)], 2),
    ],
)
def test_the_fewest_near_the_best_training_speed(rates: list[tuple[int, float]], expected: int) -> None:
    best = recommend(measured(*rates))
    assert best is not None and best.setting.n_envs == expected


def test_of_equally_many_envs_the_faster_way() -> None:
    slow, fast = measured((8, 1000), kind="inprocess"), measured((8, 1050), kind="workers")
    assert recommend(slow + fast) == fast[0]
    assert recommend([]) is None


def test_ways_follow_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native forms where there are any, workers by powers of two, a configured way alone."""
    monkeypatch.setattr(benching, "cores", lambda: 6)
    workers = [("workers", n) for n in (2, 4, 6)]
    found = ways(EnvConfig(id="CartPole-v1"))
    assert [way for way in found if way[0] != "envpool"] == [("native", None), ("inprocess", None), *workers]
    assert ways(EnvConfig(id="Taxi-v4", vectorization="workers", n_workers=3)) == [("workers", 3)]
    assert ways(EnvConfig(id="Taxi-v4", vectorization="inprocess")) == [("inprocess", None)]
    with pytest.raises(UsageError, match="no native vector form"):
        ways(EnvConfig(id="Taxi-v4", vectorization="native"))


def test_every_size_is_measured_until_more_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way is announced before it is measured; envs with masks are only given possible actions."""
    monkeypatch.setattr(benching, "measure", lambda config, setting, seconds: min(setting.n_envs, 16) * 1000.0)
    announced: list[Setting] = []
    found = list(bench(EnvConfig(id="Pendulum-v1", vectorization="inprocess"), 1.0, announced.append))
    assert [one.setting.n_envs for one in found] == [1, 2, 4, 8, 16, 32, 64]
    assert announced == [one.setting for one in found]


@pytest.mark.parametrize(("kind", "n_workers"), [("inprocess", None), ("native", None), ("workers", 2)])
def test_a_measurement_is_of_real_steps(kind: str, n_workers: int | None) -> None:
    assert benching.measure(EnvConfig(id="CartPole-v1"), Setting(kind, 4, n_workers), 0.03) > 0


def test_masked_envs_are_measured_with_possible_actions() -> None:
    """MaskedIdentity raises on a forbidden one."""
    config = EnvConfig(id="MaskedIdentity-v0", module="small_envs")
    assert benching.measure(config, Setting("inprocess", 3), 0.03) > 0
