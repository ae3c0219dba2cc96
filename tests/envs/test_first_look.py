"""Wrong data of an env is refused or warned of in its first steps, whichever way it is stepped, and costs nothing later."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from counter_env import CounterEnv
from lying_envs import LyingEnv

from gymnast.envs import first_look
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import VectorEnv
from gymnast.envs.workers import WorkerPool
from gymnast.errors import EnvError

Lie = dict[str, Any]
MASK = np.ones(2, np.int8)
REFUSED: list[tuple[Lie, str]] = [
    # Observations that numpy would broadcast, cut off or read as something else.
    ({"obs": np.array([0.5], np.float32)}, "step returned an observation of shape (1,), the space Box(-1.0, 1.0, (3,)"),
    ({"obs": 0.5}, "an observation of shape (), the space Box(-1.0, 1.0, (3,), float32) has (3,)"),
    ({"obs": np.zeros((1, 3), np.float32)}, "of shape (1, 3)"),
    ({"reset_obs": np.zeros(1, np.float32)}, "reset returned an observation of shape (1,)"),
    ({"final_obs": np.zeros(1, np.float32)}, "the last step of an episode returned an observation of shape (1,)"),
    ({"final_obs": None}, "the last step of an episode returned an observation = None"),
    ({"obs": ["0.5", "0.5", "0.5"]}, "no array of numbers"),
    ({"obs": [[0.5], [0.5, 0.5]]}, "no array of numbers"),
    (
        {"space": "image", "obs": np.full((4, 4, 3), 0.5)},
        "of float64 with 0.5 at index [0, 0, 0], the space Box(0, 255",
    ),
    ({"space": "image", "obs": np.full((4, 4, 3), 300)}, "with 300 at index [0, 0, 0], outside Box(0, 255"),
    ({"space": "image", "obs": np.zeros((3, 4, 4), np.uint8)}, "of shape (3, 4, 4)"),
    ({"space": "grid", "obs": np.array([1.0, np.nan])}, "with nan at index [1]"),
    ({"space": "choice", "obs": 7}, "with 7, outside Discrete(5, start=2)"),
    ({"space": "choice", "obs": 1}, "with 1, outside Discrete(5, start=2)"),
    ({"space": "choice", "obs": np.array([3])}, "of shape (1,)"),
    ({"space": "choice", "obs": 2.5}, "of float64 with 2.5"),
    ({"space": "choices", "obs": np.array([2, 4])}, "with 4 at index [1], outside MultiDiscrete"),
    ({"space": "bits", "obs": np.array([0, 2, 1])}, "with 2 at index [1], outside MultiBinary"),
    (
        {"space": "dict", "obs": {"eye": np.zeros((2, 2), np.uint8)}},
        "with the keys 'eye', the space has 'eye', 'place'",
    ),
    (
        {"space": "dict", "obs": {"eye": np.zeros((2, 2), np.uint8), "place": 0.5}},
        "an observation['place'] of shape ()",
    ),
    ({"space": "dict", "obs": np.zeros(3)}, "an observation of type ndarray"),
    ({"space": "tuple", "obs": (np.zeros(3), 4)}, "an observation[1] with 4, outside Discrete(4)"),
    ({"space": "tuple", "obs": (np.zeros(3),)}, "1 values, the space is a Tuple of 2"),
    # Rewards, flags and infos.
    ({"reward": "1.0"}, "the reward '1.0', which is no number"),
    ({"reward": None}, "the reward None, which is no number"),
    ({"reward": np.array([1.0])}, "a reward of shape (1,) instead of one number"),
    ({"reward": 1j}, "which is no number"),
    ({"terminated": None}, "step returned terminated = None instead of True or False"),
    ({"terminated": "False"}, "terminated = 'False' instead of True or False"),
    ({"truncated": np.array([False])}, "truncated = array([False]) instead of True or False"),
    ({"info": None}, "step returned an info of type NoneType instead of a dict"),
    ({"reset_info": None}, "reset returned an info of type NoneType instead of a dict"),
    ({"reset": np.zeros(3, np.float32)}, "reset returned one ndarray instead of (observation, info)"),
    ({"step": (np.zeros(3), 1.0, False, {})}, "step returned 4 values instead of"),
    ({"step": None}, "step returned nothing instead of"),
    # Action masks.
    (
        {"reset_info": {"action_mask": np.ones(3)}},
        "an info['action_mask'] of shape (3,) for 2 actions. Give one",
    ),
    ({"reset_info": {"action_mask": [[1], [1, 0]]}}, "an info['action_mask'] of unlike parts for 2 actions"),
    ({"reset_info": {"action_mask": MASK}}, "step returned no info['action_mask'], the first reset did"),
    (
        {"reset_info": {"action_mask": MASK}, "info": {"action_mask": np.ones(1)}},
        "step returned an info['action_mask'] of shape (1,) for 2 actions",
    ),
]
WARNED: list[tuple[Lie, str]] = [
    ({"obs": np.array([0, 50, 0], np.float32)}, "with 50 at index [1], far outside the -1 … 1 of its space"),
    ({"final_obs": np.array([-50, 0, 0], np.float32)}, "the last step of an episode returned an observation with -50"),
    ({"space": "grid", "obs": np.array([500, 1])}, "with 500 at index [0], far outside the 0 … 9"),
    ({"space": "grid", "obs": np.array([1.0, 2.0])}, "of float64, the space Box(0, 9, (2,), int64) holds int64"),
    ({"terminated": 0}, "step returned terminated = 0, which is taken for False"),
]
ACCEPTED: list[Lie] = [
    {"obs": np.zeros(3, np.float64)},
    {"obs": [0.0, 0.5, 1.0]},
    {"obs": np.array([1.5, -1.5, 0], np.float32)},  # a little outside: `env check` tells of it
    {"obs": np.array([np.nan, 0, 0])},  # told of by the check of every rollout, with the step it came from
    {"space": "choice", "obs": np.array(3)},
    {"space": "choice", "obs": np.int32(3)},
    {"space": "tuple", "obs": [np.zeros(3), np.int64(3)]},
    {"space": "dict", "obs": {"eye": np.zeros((2, 2), np.uint8), "place": np.zeros(3), "more": None}},
    {"reward": np.float32(1.0)},
    {"reward": np.array(1.0)},
    {"reward": True},
    {"terminated": np.bool_(False)},
    {"truncated": np.array(False)},
]
ADAPTERS: dict[str, Callable[..., VectorEnv]] = {
    "inprocess": lambda make: InProcessVector(make, 4),
    "workers": lambda make: WorkerPool(make, 4, n_workers=2),
    "lanes": lambda make: LanePool(functools.partial(InProcessVector, make), 4, n_workers=2),
}


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are said once per process; every test has its own."""
    monkeypatch.setattr(first_look, "_said", set())


def played(adapter: str, make: Callable[[], Any], steps: int = 6) -> VectorEnv:
    """A few steps, over the end of an episode."""
    with closing(ADAPTERS[adapter](make)) as envs:
        row = envs.new_row()
        envs.reset([1, 2, 3, 4], row)
        for _ in range(steps):
            envs.step(np.zeros(4, np.int64), row)
        envs.save_state()  # as every run does; what workers have to say comes with it at the latest
    return envs


@pytest.mark.parametrize(("lie", "said"), REFUSED, ids=lambda value: str(value)[:60] if isinstance(value, dict) else "")
def test_wrong_data_is_refused(lie: Lie, said: str) -> None:
    """By a sentence that names env, slot, what came and what was promised."""
    with pytest.raises(EnvError) as refusal:
        played("inprocess", functools.partial(LyingEnv, **lie))
    text = str(refusal.value)
    assert text.startswith("Env 0 (LyingEnv): ")
    assert said in text
    assert "env check" in text


@pytest.mark.parametrize("adapter", ["workers", "lanes"])
@pytest.mark.parametrize("lie", [{"obs": 0.5}, {"reset_obs": 0.5}, {"final_obs": None}, {"reward": "1.0"}], ids=str)
def test_workers_refuse_at_once(adapter: str, lie: Lie) -> None:
    """A fresh worker would return the same, so none is started."""
    with pytest.raises(EnvError, match=r"^Env [0-3] \(LyingEnv\): ") as refusal:
        played(adapter, functools.partial(LyingEnv, **lie))
    assert "Traceback" not in str(refusal.value)


def test_the_slot_is_counted_over_all_workers() -> None:
    """Only the env with seed 4 lies, which is in the second worker."""
    with pytest.raises(EnvError, match=r"^Env 3 \(SometimesLying\): step returned the reward '1.0'"):
        played("workers", SometimesLying)


class SometimesLying(LyingEnv):
    """Depends on the seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Seed 4 lies."""
        if seed == 4:
            self.lies = {"reward": "1.0"}
        return super().reset(seed=seed)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("lie", "said"), WARNED, ids=lambda value: str(value)[:60] if isinstance(value, dict) else "")
def test_odd_data_is_warned_of_once(adapter: str, lie: Lie, said: str, caplog: pytest.LogCaptureFixture) -> None:
    """Once for all slots, steps and workers."""
    with caplog.at_level(logging.WARNING, logger="gymnast"):
        played(adapter, functools.partial(LyingEnv, **lie), steps=10)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 1, texts
    assert texts[0].startswith("warning: LyingEnv: ")
    assert said in texts[0]


@pytest.mark.parametrize("truth", ACCEPTED, ids=str)
def test_what_gymnasium_tolerates_is_taken(truth: Lie, caplog: pytest.LogCaptureFixture) -> None:
    """Other types of the same value, and values a little outside."""
    played("inprocess", functools.partial(LyingEnv, **truth))
    assert not caplog.records


def test_a_mask_can_be_declined() -> None:
    """`env.action_mask=off` trains without a mask of the wrong shape."""
    lie = {"reset_info": {"action_mask": np.ones(3)}}
    envs = InProcessVector(functools.partial(LyingEnv, **lie), 2, action_mask=False)
    envs.reset([1, 2], envs.new_row())
    assert not envs.has_action_mask


def test_it_costs_nothing_later() -> None:
    """After the first steps the env's own step function is called, also after another reset."""
    with closing(InProcessVector(CounterEnv, 2)) as envs:
        row = envs.new_row()
        envs.reset([1, 2], row)
        for _ in range(first_look.STEPS):
            assert envs._steps[0].__name__ == "looking"
            envs.step(np.zeros(2, np.int64), row)
        assert [step.__self__ for step in envs._steps] == envs.envs
        envs.reset([1, 2], row)
        assert [step.__self__ for step in envs._steps] == envs.envs


@pytest.mark.parametrize(
    ("space", "lie", "said"),
    [
        ("choice", 7, "an observation with 7, outside Discrete(5, start=2)"),
        ("choice", 1, "an observation with 1, outside Discrete(5, start=2)"),
        ("choices", np.array([3, 0]), "an observation with 3 at index [0], outside MultiDiscrete([3 4])"),
        ("tuple", (np.zeros(3), -1), "an observation[1] with -1, outside Discrete(4)"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_later_too(space: str, lie: Any, said: str) -> None:
    """Networks take choices for places in a table, where a wrong one is another one's place or a crash."""
    with closing(InProcessVector(functools.partial(LyingEnv, space), 2)) as envs:
        row = envs.new_row()
        envs.reset([1, 2], row)
        for _ in range(first_look.STEPS):
            envs.step(np.zeros(2, np.int64), row)
        envs.envs[1].lies = {"obs": lie, "final_obs": lie}
        with pytest.raises(EnvError) as refusal:
            envs.step(np.zeros(2, np.int64), row)
    assert str(refusal.value).startswith("Env 1 (LyingEnv): it returned an ")
    assert said in str(refusal.value)


def test_a_scalar_among_arrays_is_refused_later_too() -> None:
    """What numpy cannot write in one go is written one by one, and never repeated to fill a row."""
    with closing(InProcessVector(LyingEnv, 2)) as envs:
        row = envs.new_row()
        envs.reset([1, 2], row)
        for _ in range(first_look.STEPS):
            envs.step(np.zeros(2, np.int64), row)
        envs.envs[1].lies = {"obs": np.float32(0.5), "final_obs": np.float32(0.5)}
        with pytest.raises(EnvError, match=r"Env 1 .*a value of shape \(\) came where \(3,\) is due"):
            envs.step(np.zeros(2, np.int64), row)
