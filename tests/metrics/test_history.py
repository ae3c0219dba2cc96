"""Latest values, trends, and episode statistics against numpy."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gymnast.metrics.history import POINTS, EpisodeWindow, History


def history_of(values, name="x"):
    history = History()
    for value in values:
        history.append({name: value})
    return history


def test_last_and_previous():
    history = history_of([1.0, 4.0, 4.0, None])
    assert history.rows == 4
    assert history.last("x") == 4.0
    assert history.previous("x") == 1.0  # the latest that differs, not the row before


def test_what_was_never_logged_is_none():
    history = history_of([None])
    assert history.names() == []
    assert history.last("x") is history.previous("x") is None
    assert history.trend("x", 5) == []


def test_a_constant_has_no_previous():
    assert history_of([2.0] * 5).previous("x") is None
    assert history_of([math.nan] * 5).previous("x") is None


def test_nan_replaces_the_last_value_and_stays_out_of_trends():
    history = history_of([1.0, math.nan])
    assert math.isnan(history.last("x"))
    assert history.trend("x", 10) == [1.0]


@pytest.mark.parametrize("count", [1, 7, 2 * POINTS - 1, 2 * POINTS, 2 * POINTS + 1, 5000])
def test_trend_covers_the_whole_run_in_bounded_memory(count):
    history = history_of([float(value) for value in range(count)])
    trend = history.trend("x", 20)
    assert len(trend) == min(20, count)
    assert trend == sorted(trend)
    assert trend[0] <= count / 20 + 1
    assert trend[-1] >= count * 0.92 - 1
    assert len(history.trend("x", 10**6)) <= 2 * POINTS


def test_trend_of_few_values_is_exact():
    assert history_of([3.0, 1.0, 2.0]).trend("x", 3) == [3.0, 1.0, 2.0]
    assert history_of([3.0, 1.0, 2.0, 6.0]).trend("x", 2) == [2.0, 4.0]


def test_window_matches_numpy():
    rng = np.random.default_rng(0)
    window = EpisodeWindow(100)
    returns, lengths, successes = rng.normal(1e6, 3, 250), rng.integers(1, 500, 250), rng.random(250) < 0.3
    for triple in zip(returns, lengths, successes):
        window.add(*triple)
    got = window.statistics()
    last_returns, last_lengths = returns[-100:], lengths[-100:]
    expected = {
        "rollout/return_mean": last_returns.mean(),
        "rollout/return_std": last_returns.std(),
        "rollout/return_min": last_returns.min(),
        "rollout/return_max": last_returns.max(),
        "rollout/length_mean": last_lengths.mean(),
        "rollout/length_std": last_lengths.std(),
        "rollout/episodes": 250,
        "rollout/success_rate": successes[-100:].mean(),
    }
    assert got.pop("rollout/regret") is None
    assert got == pytest.approx(expected, rel=1e-9)


def test_window_before_and_with_one_episode():
    window = EpisodeWindow(3)
    empty = window.statistics()
    assert empty.pop("rollout/episodes") == 0
    assert set(empty.values()) == {None}
    window.add(5.0, 7)
    one = window.statistics()
    assert one["rollout/return_mean"] == 5.0 and one["rollout/return_std"] == 0.0
    assert one["rollout/success_rate"] is None


def test_success_counts_only_episodes_that_say():
    window = EpisodeWindow(10)
    for success in (True, None, False, None, True, True):
        window.add(0.0, 1, success)
    assert window.statistics()["rollout/success_rate"] == 0.75


def test_regret_is_the_mean_of_the_episodes_that_tell_it():
    window = EpisodeWindow(3)
    for regret in (100.0, None, 2.0, 4.0):
        window.add(0.0, 1, None, regret)
    assert window.statistics()["rollout/regret"] == 3.0
    second = EpisodeWindow(3)
    second.load(json.loads(json.dumps(window.state())))
    assert second.statistics() == window.statistics()


def test_only_declared_terms_of_the_reward_count() -> None:
    """An env may say `reward_terms` in its own info, of any shape."""
    window = EpisodeWindow(10)
    window.add(1.0, 5, terms={"distance": 1.0})
    window = EpisodeWindow(10, ["near"])
    window.add(1.0, 5, terms={"near": 2.0, "distance": 1.0})
    assert window.statistics()["rollout/reward_terms/near"] == 2.0
    assert "rollout/reward_terms/distance" not in window.statistics()


def test_a_nan_return_does_not_hide():
    window = EpisodeWindow(10)
    window.add(math.nan, 1)
    window.add(1.0, 1)
    assert math.isnan(window.statistics()["rollout/return_mean"])


def test_window_resumes_exactly_through_json():
    rng = np.random.default_rng(1)
    first, second = EpisodeWindow(20), EpisodeWindow(20)
    for value in rng.normal(size=33):
        first.add(np.float32(value), np.int64(9), np.bool_(value > 0))
    second.load(json.loads(json.dumps(first.state())))
    for value in rng.normal(size=5):
        first.add(value, 3, None)
        second.add(value, 3, None)
        assert first.statistics() == second.statistics()
    assert first.state() == second.state()


def test_a_smaller_window_keeps_the_newest():
    big, small = EpisodeWindow(5), EpisodeWindow(2)
    for value in range(5):
        big.add(value, value)
    small.load(big.state())
    assert small.statistics()["rollout/return_mean"] == 3.5
    assert small.statistics()["rollout/episodes"] == 5


def test_returns_of_another_stage_are_forgotten():
    """What the network and the optimizer do goes on; so does the time before the first stage is known."""
    history = History()
    for stage, value in ((None, 9.0), (1.0, 5.0), (1.0, 6.0), (2.0, 1.0)):
        row = {"rollout/return_mean": value, "train/loss": value}
        history.append(row if stage is None else {**row, "train/stage": stage})
    assert history.high("rollout/return_mean").value == 1.0
    assert history.high("train/loss").value == 9.0


def test_a_window_of_every_task():
    """Next to that of all episodes, and saved with it."""
    window = EpisodeWindow(2)
    for number, task in enumerate(("a", "a", "b", "a")):
        window.add(float(number), number, task=task)
    other = EpisodeWindow(2)
    other.load(json.loads(json.dumps(window.state())))
    for one in (window, other):
        found = one.statistics()
        assert found["rollout/return_mean"] == 2.5
        assert (found["rollout/return_mean/a"], found["rollout/return_mean/b"]) == (2.0, 2.0)
        assert (found["rollout/episodes/a"], found["rollout/episodes/b"]) == (3, 1)
        assert "rollout/success_rate/a" not in found
    window.forget()
    assert window.statistics()["rollout/return_mean"] is None and window.statistics()["rollout/episodes"] == 4
