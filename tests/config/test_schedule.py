"""Schedules are pure functions of the clock, with exact values everywhere."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gymnast.config.algorithms import PPOConfig
from gymnast.config.model import Model
from gymnast.config.schedule import Clock, Linear, Scheduled, over_the_budget, segments, value_at
from gymnast.config.schema import RunConfig

ADAPTER = TypeAdapter(Scheduled)
BUDGET = 10_000
N_ENVS = 8


class Holder(Model):
    """Some config with a scheduled number."""

    number: Scheduled


def clock(progress: float) -> Clock:
    """A run of 10,000 env steps on 8 envs."""
    return Clock(round(progress * BUDGET), round(progress * BUDGET / N_ENVS), progress)


def at(raw, progress: float) -> float:
    return value_at(ADAPTER.validate_python(raw), clock(progress))


def test_a_number_stays_a_number():
    assert at(3e-4, 0.0) == at(3e-4, 1.0) == 3e-4
    assert at(1, 0.5) == 1.0 and at("1e-4", 0.5) == 1e-4
    assert at({"schedule": "constant", "value": 0.3}, 0.7) == 0.3


@pytest.mark.parametrize("k", range(11))
def test_linear_at_every_tenth(k):
    """The annealed learning rate of PPO: start·(1 − k/T)."""
    assert at({"schedule": "linear", "start": 2.5e-4}, k / 10) == pytest.approx(2.5e-4 * (1 - k / 10), abs=1e-18)
    assert at({"schedule": "linear", "start": 1.0, "end": 3.0}, k / 10) == pytest.approx(1 + 2 * k / 10)


def test_cosine():
    raw = {"schedule": "cosine", "start": 3.0, "end": 1.0}
    assert [at(raw, p) for p in (0, 0.25, 0.5, 1)] == pytest.approx([3, 2 + math.sqrt(0.5), 2, 1])


def test_exponential():
    raw = {"schedule": "exponential", "start": 1e-2, "end": 1e-4}
    assert [at(raw, p) for p in (0, 0.25, 0.5, 0.75, 1)] == pytest.approx([1e-2, 10**-2.5, 1e-3, 10**-3.5, 1e-4])
    for start, end in ((0, 1), (1, 0), (-1, 1)):
        with pytest.raises(ValidationError, match="greater than 0"):
            ADAPTER.validate_python({"schedule": "exponential", "start": start, "end": end})


@pytest.mark.parametrize("kind", ["linear", "cosine", "exponential"])
def test_decay_start_and_end_and_floor(kind):
    raw = {"schedule": kind, "start": 1.0, "end": 0.1, "decay_start": 0.2, "decay_end": 0.6}
    assert at(raw, 0.0) == at(raw, 0.1) == at(raw, 0.2) == 1.0
    assert at(raw, 0.6) == pytest.approx(0.1) and at(raw, 0.61) == at(raw, 1.0) == pytest.approx(0.1)
    halfway = {"linear": 0.55, "cosine": 0.55, "exponential": math.sqrt(0.1)}[kind]
    assert at(raw, 0.4) == pytest.approx(halfway)
    with_floor = {**raw, "floor": 0.3}
    assert at(with_floor, 0.4) == pytest.approx(halfway) and at(with_floor, 1.0) == 0.3


def test_every_axis():
    over_env_steps = {"schedule": "linear", "start": 1.0, "axis": "env_steps", "decay_end": 5000}
    assert [at(over_env_steps, p) for p in (0, 0.25, 0.5, 1)] == [1.0, 0.5, 0.0, 0.0]
    over_vec_steps = {"schedule": "linear", "start": 1.0, "axis": "vec_steps", "decay_start": 250, "decay_end": 1250}
    assert [at(over_vec_steps, p) for p in (0.2, 0.6, 1)] == [1.0, 0.5, 0.0]
    steps = {"schedule": "piecewise", "points": [[0, 1], [5000, 2]], "axis": "env_steps"}
    assert [at(steps, p) for p in (0, 0.4999, 0.5)] == [1, 1, 2]
    with pytest.raises(ValidationError, match="needs decay_end"):
        ADAPTER.validate_python({"schedule": "linear", "start": 1.0, "axis": "env_steps"})
    with pytest.raises(ValidationError, match="decay_end must lie after decay_start"):
        ADAPTER.validate_python({"schedule": "linear", "start": 1.0, "decay_start": 0.5, "decay_end": 0.5})


def test_piecewise_jumps_exactly_at_its_points():
    raw = {"schedule": "piecewise", "points": [[0.1, 1.0], [0.5, 2.0], [0.75, 4.0]]}
    before = math.nextafter(0.5, 0)
    assert [at(raw, p) for p in (0, 0.1, before, 0.5, 0.75, 1)] == [1, 1, 1, 2, 4, 4]


def test_piecewise_with_straight_lines():
    raw = {"schedule": "piecewise", "points": [[0.2, 1.0], [0.6, 3.0], [0.8, 0.0]], "interpolate": "linear"}
    assert [at(raw, p) for p in (0, 0.2, 0.4, 0.6, 0.7, 0.8, 1)] == pytest.approx([1, 1, 2, 3, 1.5, 0, 0])


@pytest.mark.parametrize("interpolate", ["step", "linear"])
def test_piecewise_with_a_floor(interpolate):
    raw = {
        "schedule": "piecewise",
        "points": [[0, 1.0], [0.5, 0.5], [1, 0.0]],
        "interpolate": interpolate,
        "floor": 0.4,
    }
    without = {key: value for key, value in raw.items() if key != "floor"}
    for p in (0, 0.2, 0.5, 0.6, 0.7, 0.999, 1):
        assert at(raw, p) == max(0.4, at(without, p))
    with pytest.raises(ValidationError, match="must be at least 0"):
        PPOConfig(id="ppo", ent_coef={"schedule": "piecewise", "points": [[0, 1]], "floor": -1})


def test_positions_of_a_piecewise_schedule_increase():
    for points in ([[0.5, 1], [0.1, 2]], [[0.1, 1], [0.1, 2]]):
        with pytest.raises(ValidationError, match="must increase"):
            ADAPTER.validate_python({"schedule": "piecewise", "points": points})
    with pytest.raises(ValidationError):
        ADAPTER.validate_python([])


def test_short_forms():
    assert ADAPTER.validate_python("lin_2.5e-4") == Linear(schedule="linear", start=2.5e-4, end=0.0)
    assert at("lin_0.2", 0.5) == pytest.approx(0.1)
    points = [[0, 1e-3], [0.5, 1e-4], [1, 0]]
    assert [at(points, p) for p in (0, 0.25, 0.5, 0.75, 1)] == pytest.approx([1e-3, 5.5e-4, 1e-4, 5e-5, 0])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("lin_fast", "after lin_ comes a number"),
        ("quick", "expected a number or a schedule, not 'quick'"),
        (True, "expected a number or a schedule"),
        (None, "expected a number or a schedule"),
        ({"start": 1.0}, "a schedule needs 'schedule:' with one of constant, linear"),
        ({"schedule": "quadratic", "start": 1}, "a schedule needs 'schedule:' with one of"),
        ({"schedule": ["linear"], "start": 1}, "a schedule needs 'schedule:' with one of"),
        (math.nan, "finite number"),
        ("inf", "finite number"),
        ({"schedule": "linear", "start": math.nan}, "finite number"),
    ],
)
def test_what_is_not_a_schedule(raw, words):
    with pytest.raises(ValidationError, match=words) as caught:
        Holder(number=raw)
    assert caught.value.error_count() == 1


def test_ranges_look_at_every_value_a_schedule_takes():
    for wrong in (1.5, "lin_1.5", {"schedule": "linear", "start": 0.9, "end": 1.1}, [[0, 0.9], [0.5, 1.2]]):
        with pytest.raises(ValidationError, match="must be at most 1"):
            PPOConfig(id="ppo", gamma=wrong)
    with pytest.raises(ValidationError, match="must be at least 0"):
        PPOConfig(id="ppo", ent_coef={"schedule": "linear", "start": 0.1, "end": 0.0, "floor": -1})
    with pytest.raises(ValidationError, match="must be above 0"):
        PPOConfig(id="ppo", learning_rate=0)
    PPOConfig(id="ppo", learning_rate="lin_1e-3")  # may fall to zero, not start there


def test_every_number_of_an_algorithm_can_be_scheduled():
    for name in ("learning_rate", "gamma", "max_grad_norm", "n_epochs", "gae_lambda", "clip_range", "clip_range_vf"):
        config = PPOConfig(id="ppo", **{name: {"schedule": "linear", "start": 1.0, "end": 1.0}})
        assert value_at(getattr(config, name), clock(0.3)) == 1.0
    for name in ("ent_coef", "vf_coef", "target_kl"):
        assert value_at(getattr(PPOConfig(id="ppo", **{name: "lin_0.5"}), name), clock(0.5)) == 0.25


ALL_KINDS = [
    {"schedule": "linear", "start": 1.0},
    {"schedule": "cosine", "start": 1.0, "decay_start": 0.3},
    {"schedule": "exponential", "start": 1.0, "end": 0.01},
    {"schedule": "piecewise", "points": [[0, 1], [0.3, 2], [0.9, 3]]},
]


@pytest.mark.parametrize("raw", ALL_KINDS)
def test_values_do_not_depend_on_what_was_asked_before(raw):
    """A resumed run asks a fresh copy from the middle on and gets the same numbers to the bit."""
    schedule = ADAPTER.validate_python(raw)
    moments = [i / 50 for i in range(51)]
    expected = [schedule.at(clock(p)) for p in moments]
    shuffled = list(enumerate(moments))
    random.Random(0).shuffle(shuffled)
    reloaded = ADAPTER.validate_python(schedule.model_dump(mode="json"))
    assert reloaded == schedule
    assert all(reloaded.at(clock(p)) == expected[i] for i, p in shuffled)


@given(st.floats(0, 1), st.floats(-5, 5), st.floats(-5, 5))
def test_decays_stay_between_their_ends(progress, start, end):
    for kind in ("linear", "cosine"):
        value = at({"schedule": kind, "start": start, "end": end}, progress)
        assert min(start, end) - 1e-9 <= value <= max(start, end) + 1e-9


def test_only_jumps_that_ask_for_it_reset_the_optimizer():
    reset = ADAPTER.validate_python({"schedule": "piecewise", "points": [[0, 1], [0.5, 2]], "reset_optimizer": True})
    plain = ADAPTER.validate_python({"schedule": "piecewise", "points": [[0, 1], [0.5, 2]]})
    values = {"learning_rate": reset, "clip_range": plain, "gamma": 0.9}
    assert segments(values, clock(0.49)) == {"learning_rate": 0}
    assert segments(values, clock(0.5)) == {"learning_rate": 1}


def test_a_schedule_survives_the_saved_config():
    raw = {"env": {"id": "X-v0"}, "train": {"env_steps": 10}, "algo": {"id": "ppo", "learning_rate": "lin_1e-3"}}
    config = RunConfig.model_validate(raw)
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_which_courses_end_with_the_budget():
    algo = {
        "learning_rate": ADAPTER.validate_python("lin_3e-4"),
        "gamma": 0.99,
        "clip_range": ADAPTER.validate_python([[0, 0.2], [0.5, 0.1]]),
        "ent_coef": ADAPTER.validate_python({"schedule": "constant", "value": 0.01}),
        "vf_coef": ADAPTER.validate_python(
            {"schedule": "linear", "start": 1, "end": 0.5, "decay_end": 1000, "axis": "env_steps"}
        ),
    }
    assert over_the_budget(algo) == {"learning_rate": "0.0003 → 0", "clip_range": "0.2 → 0.1"}
