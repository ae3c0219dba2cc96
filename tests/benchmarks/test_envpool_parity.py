"""The parity table as shipped and as shown, and envs that are known to be others: the tests behind the table reject them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import envpool_parity as parity
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv, PendulumEnv
from gymnasium.envs.toy_text import BlackjackEnv, FrozenLakeEnv, TaxiEnv
from parity_one_step import one_step
from parity_sampling import first_states, moments, transitions, uniform
from parity_statistics import LEVEL, Check, frequencies, many_frequencies, numbers, passed, vectors
from parity_tables import table_of

from gymnast.envs.inprocess import InProcessVector

DOCS = Path(__file__).resolve().parents[2] / "docs"


def made_of(env_class: type[gym.Env], limit: int = 1000, most: int = 100, **kwargs: Any) -> parity.Make:
    """The envs of a package in which this class is the env."""

    def make(n_envs: int, asked: int | None) -> InProcessVector:
        return InProcessVector(
            lambda: gym.wrappers.TimeLimit(env_class(**kwargs), asked or limit), min(n_envs, most), action_mask=False
        )

    return make


def rejected(checks: list[Check]) -> str:
    """What is wrong with an env, in words; empty where nothing is."""
    worst = min(checks, key=lambda check: check.p)
    return "" if passed(checks, len(checks)) else worst.what


# ---- the table as shipped ----------------------------------------------------------------------------------------------


def test_the_page_shows_the_table_that_ships() -> None:
    """`python benchmarks/envpool_parity.py --markdown` gives what stands in the page."""
    content = json.loads(parity.FILE.read_text())
    assert parity.markdown(content["rows"]) in (DOCS / "vectorization.md").read_text()
    assert [(row["id"], row["kwargs"], row["task"]) for row in content["rows"]] == [
        (r.id, r.kwargs, r.task) for r in parity.ROWS
    ]
    assert content["level"] == LEVEL == 0.001


def test_a_verdict_follows_from_its_tests() -> None:
    """A row passes when all of its tests do, and says which did not; those known to be other envs fail."""
    verdicts = {}
    for row in json.loads(parity.FILE.read_text())["rows"]:
        failed = [name for name, result in row["results"].items() if not result["pass"]]
        verdicts[row["id"]] = row["verdict"]
        assert row["verdict"] == ("fail" if failed else "pass")
        assert [reason.split(":")[0] for reason in row["reasons"]] == failed
    assert {verdicts[name] for name in ("Taxi-v4", "Blackjack-v1", "Pendulum-v1", "Ant-v5")} == {"fail"}


# ---- tabular envs: against their own table -----------------------------------------------------------------------------


class DeliveredTaxi(TaxiEnv):
    """EnvPool's: the passenger may wait where he wants to go."""

    def __init__(self) -> None:
        super().__init__()
        passenger, destination = np.arange(500) // 4 % 5, np.arange(500) % 4
        self.initial_state_distrib = (passenger < 4) / 400.0
        assert 0.24 < self.initial_state_distrib[passenger == destination].sum() < 0.26


class AnyAceBlackjack(BlackjackEnv):
    """EnvPool's: an ace that cannot be used is shown as one that can."""

    def _get_obs(self) -> tuple[int, int, int]:
        total, card, _ = super()._get_obs()
        return total, card, int(1 in self.player)


class DryLake(FrozenLakeEnv):
    """Slips to one side a little more often than to the other."""

    def __init__(self) -> None:
        super().__init__(is_slippery=True)
        for actions in self.P.values():
            for outcomes in actions.values():
                if len(outcomes) == 3:
                    outcomes[:] = [(p, *o[1:]) for p, o in zip((0.28, 1 / 3, 1 - 0.28 - 1 / 3), outcomes)]


def test_a_taxi_whose_passenger_has_arrived() -> None:
    """A quarter of the starts are states in which Gymnasium never starts; Gymnasium's own starts pass."""
    table = table_of(gym.make("Taxi-v4"))
    assert table is not None and len(table.starts) == 300 and len(table.steps) == 400 * 6
    found = rejected(parity.check_starts(table, made_of(DeliveredTaxi, most=10), 10))
    assert "are impossible in Gymnasium" in found
    impossible, total = (int(word.replace(",", "")) for word in found.split()[:3:2])
    assert 0.2 < impossible / total < 0.3
    assert not rejected(parity.check_starts(table, made_of(TaxiEnv, most=10), 10))


def test_first_states_that_are_missing_or_too_frequent() -> None:
    """One of 300 states that is never seen, or twice as often: no chi-square over all of them finds that."""
    model = dict.fromkeys(range(300), 1 / 300)
    random = np.random.default_rng(0)
    right = Counter(random.integers(0, 300, 9000).tolist())
    assert not rejected([frequencies(right, model)])
    missing = Counter(random.integers(0, 299, 9000).tolist())
    assert rejected([frequencies(missing, model)]) == "0 of 9,000 are 299"
    frequent = Counter(np.minimum(random.integers(0, 301, 9000), 299).tolist())
    assert rejected([frequencies(frequent, model)]).endswith("are 299")


def test_a_blackjack_that_shows_every_ace() -> None:
    """The means of returns do not tell, over 500 hands or 100,000; the first card drawn does."""
    env = gym.make("Blackjack-v1", sab=True)
    table = table_of(env)
    assert table is not None and table.tells_first_step
    wrong, right = (made_of(kind, sab=True) for kind in (AnyAceBlackjack, BlackjackEnv))
    seen = transitions(wrong(50, None), 2000, 6, marked=True)
    assert "are impossible in Gymnasium" in rejected(many_frequencies(seen, table.steps))
    seen = transitions(right(50, None), 10_000, 6, marked=True)
    assert not rejected(many_frequencies(seen, table.steps))
    assert not rejected([frequencies(first_states(right(50, None), 5000, 5, marked=True), table.starts)])


def test_transitions_of_other_frequency_and_states_left_out() -> None:
    """The same outcomes, each possible, but not as often; and a sample that has not been everywhere."""
    table = table_of(gym.make("FrozenLake-v1"))
    assert table is not None
    assert not rejected(parity.check_transitions(table, made_of(FrozenLakeEnv), 10_000))
    assert "frequencies" in rejected(parity.check_transitions(table, made_of(DryLake), 20_000))
    assert "states and actions tried" in rejected(parity.check_transitions(table, made_of(FrozenLakeEnv), 100))


# ---- other envs: against Gymnasium's -----------------------------------------------------------------------------------


class LatePendulum(PendulumEnv):
    """EnvPool's: the angle moves with the speed before that is cut off."""

    def step(self, action: np.ndarray) -> Any:
        angle, speed = self.state
        result = super().step(action)
        pushed = speed + (15 * np.sin(angle) + 3 * np.clip(action[0], -2, 2)) * self.dt
        self.state = np.array([angle + pushed * self.dt, self.state[1]])
        return self._get_obs(), *result[1:]


class WideCartPole(CartPoleEnv):
    """Starts 5 % farther out."""

    def reset(self, **options: Any) -> Any:
        obs, info = super().reset(**options)
        self.state = self.state * 1.05
        return obs * np.float32(1.05), info


class TwinCartPole(CartPoleEnv):
    """Each component is right by itself, but position and speed are the same number."""

    def reset(self, **options: Any) -> Any:
        _, info = super().reset(**options)
        self.state[1] = self.state[0]
        return np.array(self.state, np.float32), info


def test_a_pendulum_that_is_cut_off_too_late() -> None:
    """Random actions never reach the speed limit, so that a rule that does is played as well."""
    script = parity.SCRIPTS["Pendulum"]
    env = gym.make("Pendulum-v1")
    assert one_step(env, made_of(LatePendulum)(50, None), (uniform, script), 2)["pass"] is False
    assert one_step(env, made_of(PendulumEnv)(50, None), (uniform, script), 2)["pass"] is True


@pytest.mark.parametrize(
    ("wrong", "words"), [(WideCartPole, "Gymnasium's range"), (TwinCartPole, "direction"), (CartPoleEnv, "")]
)
def test_cart_poles_that_start_elsewhere(wrong: type[gym.Env], words: str) -> None:
    """Farther out, or with components that hang together; and one that is right."""
    ours = moments(made_of(CartPoleEnv)(100, None), uniform, (0,), 10, 1)[0].seen
    theirs = moments(made_of(wrong)(100, None), uniform, (0,), 10, 2)[0].seen
    found = rejected(vectors("reset", ours, theirs))
    assert words in found and bool(words) == bool(found)


def test_another_time_limit_and_another_end() -> None:
    """An episode of 8 steps for one of 9, and one that terminates where it should be cut off."""

    class Ending(PendulumEnv):
        steps = 0

        def reset(self, **options: Any) -> Any:
            self.steps = 0
            return super().reset(**options)

        def step(self, action: np.ndarray) -> Any:
            self.steps += 1
            obs, reward, _, _, info = super().step(action)
            return obs, reward, self.steps == 9, False, info

    ours = made_of(PendulumEnv, 9)
    assert not rejected(parity.check_episodes(ours, made_of(PendulumEnv, 9), parity.STILL, 1000))
    assert "lengths" in rejected(parity.check_episodes(ours, made_of(PendulumEnv, 8), parity.STILL, 1000))
    assert "ends" in rejected(parity.check_episodes(ours, made_of(Ending, 99), parity.STILL, 1000))


def test_right_samples_pass_almost_always() -> None:
    """A thousand checks in a row of a table: the level is that of the row, not of each check."""
    random = np.random.default_rng(1)
    failed = 0
    for _ in range(10):
        a, b = random.normal(size=(2, 300, 30))
        failed += bool(rejected(vectors("sample", a, b)))
    assert failed == 0
    assert min(check.p for check in vectors("sample", a, b)) < 0.05  # of which one by itself would fail
    assert not rejected(numbers("constant", np.ones(50), np.ones(50)))
    assert rejected(numbers("constant", np.ones(50), np.zeros(50)))
