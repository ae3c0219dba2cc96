"""The audit's numbers on envs whose every reward is known."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from gymnast.envs.inprocess import InProcessVector
from gymnast.errors import EnvError
from gymnast.evaluation import audit as module
from gymnast.evaluation.audit import Audit, audit, histogram, random_policy, scaling_advice


class Paying(gym.Env):
    """Pays 1 at every fifth step and 100 at the end; odd seeds play 10 steps and terminate, even ones 20 and are cut off."""

    observation_space = spaces.Box(np.array([0, -1, 0], np.float32), np.array([15, 1, 1], np.float32))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.odd = self.odd if seed is None else bool(seed % 2)
        self.now = 0
        return self.observe(), {}

    def observe(self) -> np.ndarray:
        """The step (up to 20, more than declared), a constant, and something within bounds."""
        return np.array([self.now, 0.5, self.now / 20], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.now += 1
        last = self.now == (10 if self.odd else 20)
        reward = 100.0 if last else float(self.now % 5 == 0)
        return self.observe(), reward, last and self.odd, last and not self.odd, {}


@pytest.fixture(scope="module")
def played() -> Audit:
    """Three episodes of 10 and two of 20 steps."""
    envs = InProcessVector(Paying, 2)
    counted: list[int] = []
    result = audit(envs, random_policy(envs, 0), 5, [1, 2], counted.append)
    assert counted == [1, 2, 3, 4, 5]
    return result


def test_the_same_number_of_episodes_in_each_slot(played: Audit) -> None:
    """The short ones are not favoured: five episodes are three of slot 0 and two of slot 1."""
    assert sorted(played.lengths.tolist()) == [10, 10, 10, 20, 20]
    assert sorted(played.returns.tolist()) == [101, 101, 101, 103, 103]
    assert len(played.rewards) == 70 and played.terminated.sum() == 3
    numbers = played.numbers()
    assert (numbers["episodes"], numbers["steps"], numbers["terminated"]) == (5, 70, 0.6)
    assert numbers["truncated"] == pytest.approx(0.4)
    assert numbers["lengths"]["mean"] == 14 and numbers["lengths"]["quantiles"]["50%"] == 10


def test_rewards(played: Audit) -> None:
    numbers = played.numbers()
    assert numbers["reward"]["max"] == 100 and numbers["reward"]["mean"] == pytest.approx((3 * 101 + 2 * 103) / 70)
    assert numbers["reward"]["zero"] == pytest.approx((3 * 8 + 2 * 16) / 70)
    assert numbers["histogram"] == [
        {"low": 0.0, "high": 0.0, "count": 56},
        {"low": 1.0, "high": 1.0, "count": 9},
        {"low": 100.0, "high": 100.0, "count": 5},
    ]


def test_steps_between_rewards_do_not_cross_episodes(played: Audit) -> None:
    gaps = played.gaps()
    assert (gaps["usual"], gaps["mean"], gaps["median"], gaps["max"]) == (0.0, 5.0, 5.0, 5)
    numbers = played.numbers()
    assert numbers["n_steps"]["suggested"] == 32  # 4 × 5 to a power of two
    assert "every 5 steps" in numbers["n_steps"]["reason"]


def test_outliers_say_where_they_happen() -> None:
    """A hundred ordinary rewards, and a fall in the last step."""
    rewards = np.append(np.linspace(-1, 1, 100), -50.0)
    found = Audit(rewards, np.arange(1, 102), np.zeros(1), np.zeros(1), np.ones(1, np.bool_)).outliers()
    assert found == [
        {"min": -50.0, "max": -50.0, "count": 1, "share": 1 / 101, "median_step": 101.0, "last_step": 1.0},
    ]
    assert Audit(np.ones(9), np.arange(9), np.ones(1), np.ones(1), np.ones(1)).outliers() == []


def test_observations_beside_their_declaration(played: Audit) -> None:
    """Final observations count, too: only they reach 20."""
    assert [component.remark for component in played.components] == ["leaves the declared range", "constant", ""]
    assert (played.components[0].smallest, played.components[0].largest) == (0.0, 20.0)


def test_many_values_become_bins() -> None:
    bins = histogram(np.linspace(0, 1, 240))
    assert len(bins) == 12 and {one["count"] for one in bins} == {20}
    assert (bins[0]["low"], bins[-1]["high"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (np.ones(10), "no scaling needed"),
        (np.zeros(10), "No reward at all"),
        (np.full(10, -200.0), "Targets of the critic are large"),
        (np.full(10, 1e-3), "Targets of the critic are tiny"),
        (np.append(np.full(9, 0.1), 10.0), "100 times the usual one"),
        (np.append(np.zeros(99), 1.0), "Rewards are rare"),
    ],
)
def test_advice_about_scaling(rewards: np.ndarray, words: str) -> None:
    assert words in scaling_advice(rewards, np.arange(1, len(rewards) + 1))["advice"]


def test_targets_end_with_their_episode() -> None:
    """Two episodes of two steps: 1 + 0.99, 1, and again."""
    advice = scaling_advice(np.ones(4), np.array([1, 2, 1, 2]))
    assert advice["target_size"] == pytest.approx((1.99 + 1) / 2)


def test_an_episode_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EPISODE_STEPS", 15)
    envs = InProcessVector(Paying, 1)
    with pytest.raises(EnvError, match=r"did not end within 15 steps: set env\.time_limit"):
        audit(envs, random_policy(envs, 0), 1, [2], lambda count: None)
