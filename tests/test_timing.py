"""Stage timers, on a clock of our own."""

from __future__ import annotations

import pytest

from gymnast import timing
from gymnast.timing import StageTimer


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""

    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", clock)
    return clock


def test_stages_add_up_and_the_rest_is_other(clock):
    timer = StageTimer()
    for seconds in (1.0, 2.0):
        with timer.stage("env"):
            clock.now += seconds
    timer.add("learn", 5.0)
    clock.now += 7.0
    assert timer.seconds == {"env": 3.0, "learn": 5.0} and timer.wall() == 10.0
    assert timer.split() == {"env": 0.3, "learn": 0.5, "other": pytest.approx(0.2)}
    assert sum(timer.split().values()) == pytest.approx(1.0)


def test_a_stage_counts_when_its_body_fails(clock):
    timer = StageTimer()
    with pytest.raises(RuntimeError), timer.stage("env"):
        clock.now += 2.0
        raise RuntimeError
    assert timer.seconds == {"env": 2.0}


def test_a_timer_that_has_just_begun(clock):
    assert StageTimer().split() == {"other": 1.0}
