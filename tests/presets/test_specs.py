"""The spec of every shipped env file against the env itself."""

from __future__ import annotations

import itertools
from functools import cache
from importlib.resources import files
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from ruamel.yaml import YAML

from gymnast.config.spec import Component, EnvSpec
from gymnast.envs.spaces import canonical
from gymnast.evaluation.exact import Transitions, exact_return, optimal_return, tabular_model

PRESETS = files("gymnast") / "presets"
FIRST = {
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v1",
    "CliffWalking-v1",
    "FrozenLake-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Taxi-v4",
}
NAMES = sorted(path.name.removesuffix(".yaml") for path in (PRESETS / "envs").iterdir() if path.name.endswith(".yaml"))
TESTED = [name for name in NAMES if name in FIRST]

# Episodes of a fresh sample and the standard deviation of a random episode's return, from the runs behind random_score.
# The sample's own deviation would not do: ten random Acrobot episodes are mostly ten times -500.
RANDOM = {
    "Acrobot-v1": (10, 11.8),
    "Blackjack-v1": (3000, 0.895),
    "CartPole-v1": (200, 12.0),
    "CliffWalking-v1": (10, 68_000.0),
    "FrozenLake-v1": (2000, 0.117),
    "MountainCar-v0": (12, 0.0),
    "MountainCarContinuous-v0": (4, 3.4),
    "Pendulum-v1": (15, 290.0),
    "Taxi-v4": (20, 106.6),
}


@cache
def load(name: str) -> dict[str, Any]:
    return YAML(typ="rt").load((PRESETS / "envs" / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def spec_of(name: str) -> EnvSpec:
    return EnvSpec.model_validate(load(name)["spec"])


@cache
def random_episodes(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observations `[steps, D]`, rewards `[steps]` and returns `[episodes]` of at least 2,000 random steps."""
    env = gym.make(name, disable_env_checker=True)
    env.action_space.seed(11)
    rng = np.random.default_rng(11)
    draw = (lambda: int(rng.integers(env.action_space.n))) if spec_of(name).actions else env.action_space.sample
    observations, rewards, returns = [], [], []
    env.reset(seed=11)
    while len(returns) < RANDOM[name][0] or len(rewards) < 2000:
        obs, _ = env.reset()
        observations.append(obs)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(draw())
            observations.append(obs)
            rewards.append(reward)
            total += reward
            over = terminated or truncated
        returns.append(total)
    return np.array(observations, np.float64).reshape(len(observations), -1), np.array(rewards), np.array(returns)


def inside(values: np.ndarray, low: float | None, high: float | None) -> bool:
    slack = 1e-5  # bounds are written with seven digits, observations are float32
    return (low is None or values.min() >= low - slack) and (high is None or values.max() <= high + slack)


def same_bounds(parts: list[Component], box: spaces.Box) -> None:
    assert len(parts) == int(np.prod(box.shape))
    low = [-np.inf if part.low is None else part.low for part in parts]
    high = [np.inf if part.high is None else part.high for part in parts]
    np.testing.assert_allclose(low, box.low.ravel(), rtol=1e-5)
    np.testing.assert_allclose(high, box.high.ravel(), rtol=1e-5)


def test_the_first_files_are_there():
    assert set(NAMES) >= FIRST


@pytest.mark.parametrize("name", NAMES)
def test_file_is_well_formed(name):
    raw = load(name)
    assert raw["id"] == name
    assert set(raw) <= {"id", "aliases", "extends", "spec", "defaults", "variants"}
    assert "extends" not in raw or (PRESETS / "bases" / f"{raw['extends']}.yaml").is_file()
    spec = spec_of(name)
    assert spec.description and spec.notes and spec.solved_source and spec.random_score
    assert bool(spec.actions) != bool(spec.action_components)
    scores = [spec.random_score, spec.optimal_score, spec.best_published, *spec.reference_scores.values()]
    assert all(score.source for score in scores if score is not None)
    assert all(score.protocol for score in spec.reference_scores.values())


@pytest.mark.parametrize("name", TESTED)
def test_spec_matches_the_spaces(name):
    spec, env = spec_of(name), gym.make(name)
    if isinstance(env.action_space, spaces.Discrete):
        assert len(spec.actions) == len(set(spec.actions)) == env.action_space.n
    else:
        same_bounds(spec.action_components, env.action_space)
    space = canonical(env.observation_space)
    if isinstance(space, spaces.Box):
        same_bounds(spec.observation, space)
        return
    sizes = [int(space.n)] if isinstance(space, spaces.Discrete) else space.nvec.tolist()
    assert len(spec.observation) == len(sizes)
    for part, size in zip(spec.observation, sizes):
        assert 0 <= part.low < part.high <= size - 1
        assert len(part.values) in (0, size)


@pytest.mark.parametrize("name", TESTED)
def test_horizon_and_threshold_are_the_registered_ones(name):
    spec, registered = spec_of(name), gym.spec(name)
    assert spec.horizon == registered.max_episode_steps
    if "registered in Gymnasium" in spec.solved_source:
        assert spec.solved_at == registered.reward_threshold
    else:
        assert registered.reward_threshold is None or name == "Taxi-v4"


@pytest.mark.parametrize("name", TESTED)
def test_aliases_are_renames_gymnasium_no_longer_knows(name):
    for alias in load(name).get("aliases", []):
        assert alias.rpartition("-")[0] == name.rpartition("-")[0]
        assert alias not in gym.registry


@pytest.mark.parametrize("name", TESTED)
def test_random_play_stays_inside_the_ranges(name):
    spec = spec_of(name)
    observations, rewards, returns = random_episodes(name)
    assert len(rewards) >= 2000
    for index, part in enumerate(spec.observation):
        assert inside(observations[:, index], part.low, part.high), part.name
    assert inside(rewards, *spec.reward_range)
    assert inside(returns, *spec.return_range)


@pytest.mark.parametrize("name", TESTED)
def test_random_score_fits_a_fresh_sample(name):
    _, _, returns = random_episodes(name)
    standard_error = RANDOM[name][1] / np.sqrt(len(returns))
    assert abs(returns.mean() - spec_of(name).random_score.score) <= 5 * standard_error


@pytest.mark.parametrize("name", TESTED)
def test_scores_are_in_order(name):
    spec = spec_of(name)
    low, high = spec.return_range
    best = high if spec.optimal_score is None else spec.optimal_score.score
    assert (low is None or low <= spec.random_score.score) and spec.random_score.score < spec.solved_at <= best <= high
    published = [spec.best_published, *spec.reference_scores.values()]
    assert all(score.score <= high and (low is None or score.score >= low) for score in published if score)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_tabular_scores_are_exact(name):
    model, spec = tabular_model(gym.make(name)), spec_of(name)
    assert model is not None
    optimum, actions = optimal_return(model.P, model.initial_distribution, model.horizon)
    assert spec.optimal_score.score == pytest.approx(optimum, abs=1e-5)
    policy = np.full(model.P.probability.shape[:2], 1 / model.P.probability.shape[1])
    random = exact_return(model.P, model.initial_distribution, policy, model.horizon)
    assert spec.random_score.score == pytest.approx(random, rel=1e-4)
    # The largest return is that of the luckiest start; FrozenLake's is won or lost.
    if name != "FrozenLake-v1":
        states = np.eye(len(model.initial_distribution))[model.initial_distribution > 0]
        table = np.eye(policy.shape[1])[actions]
        best = max(exact_return(model.P, state, table, model.horizon) for state in states)
        assert spec.return_range[1] == pytest.approx(best)


MOVES = {"up": (-1, 0), "down": (1, 0), "north": (-1, 0), "south": (1, 0)}
MOVES |= {"left": (0, -1), "right": (0, 1), "west": (0, -1), "east": (0, 1)}


@pytest.mark.parametrize(
    ("name", "kwargs", "columns", "middle", "cell"),
    [
        ("FrozenLake-v1", {"is_slippery": False}, 4, 9, lambda state: state),
        ("CliffWalking-v1", {}, 12, 17, lambda state: state),
        ("Taxi-v4", {}, 5, 12 * 20, lambda state: state // 20),
    ],
)
def test_labels_of_grid_moves_are_in_order(name, kwargs, columns, middle, cell):
    table = gym.make(name, **kwargs).unwrapped.P
    row, column = divmod(cell(middle), columns)
    for action, label in enumerate(spec_of(name).actions):
        if label in MOVES:
            _, next_state, _, _ = table[middle][action][0]
            assert divmod(int(cell(next_state)), columns) == (row + MOVES[label][0], column + MOVES[label][1]), label


def test_labels_of_the_other_actions_are_in_order():
    taxi = gym.make("Taxi-v4").unwrapped
    actions = spec_of("Taxi-v4").actions
    waiting, riding = taxi.encode(0, 0, 0, 1), taxi.encode(0, 4, 4, 1)
    assert taxi.P[waiting][actions.index("pick up")][0][1] == taxi.encode(0, 0, 4, 1)
    assert taxi.P[riding][actions.index("drop off")][0][2:] == (20, True)
    blackjack = gym.make("Blackjack-v1")
    blackjack.reset(seed=0)
    assert blackjack.step(spec_of("Blackjack-v1").actions.index("stick"))[2]
    for name, velocity, labels in [
        ("CartPole-v1", 1, ["push left", "push right"]),
        ("MountainCar-v0", 1, ["push left", "coast", "push right"]),
        ("Acrobot-v1", 5, ["torque -1", "no torque", "torque +1"]),
    ]:
        env, changes = gym.make(name), []
        for label in labels:
            env.reset(seed=0)
            changes.append(env.step(spec_of(name).actions.index(label))[0][velocity])
        assert changes == sorted(changes) and len(set(changes)) == len(labels)


# Blackjack carries no transition table: its exact scores are computed here from the rules.
CARDS = [(card, (4 if card == 10 else 1) / 13) for card in range(1, 11)]


def deal(total: int, ace: int, card: int) -> tuple[int, int]:
    """Sum and usable ace after one more card."""
    hard = total - 10 * ace + card
    return (hard + 10, 1) if (ace or card == 1) and hard + 10 <= 21 else (hard, 0)


@cache
def dealer_scores(total: int, ace: int) -> dict[int, float]:
    """Distribution of the dealer's final score; 0 is a bust."""
    if total >= 17:
        return {total if total <= 21 else 0: 1.0}
    scores: dict[int, float] = {}
    for card, p in CARDS:
        for score, q in dealer_scores(*deal(total, ace, card)).items():
            scores[score] = scores.get(score, 0.0) + p * q
    return scores


def stick_value(total: int, shown: int, natural: bool, sab: bool) -> float:
    value = 0.0
    for hidden, p in CARDS:
        if sab and natural and sorted((shown, hidden)) != [1, 10]:
            value += p
            continue
        for score, q in dealer_scores(*deal(*deal(0, 0, shown), hidden)).items():
            value += p * q * ((total > score) - (total < score))
    return value


def blackjack(sab: bool) -> tuple[Transitions, np.ndarray, dict[tuple[int, int, int, bool], int]]:
    """Table, start distribution and state numbers; a state is sum, dealer card, usable ace, two-card natural."""
    keys = itertools.product(range(4, 22), range(1, 11), (0, 1), (False, True))
    number = {key: index for index, key in enumerate(keys)}
    table = {}
    for (total, shown, ace, natural), state in number.items():
        hit = []
        for card, p in CARDS:
            total_after, ace_after = deal(total, ace, card)
            bust = total_after > 21
            hit.append((p, 0, -1.0, True) if bust else (p, number[total_after, shown, ace_after, False], 0.0, False))
        table[state] = {0: [(1.0, 0, stick_value(total, shown, natural, sab), True)], 1: hit}
    start = np.zeros(len(number))
    for (first, p), (second, q), (shown, r) in itertools.product(CARDS, repeat=3):
        total, ace = deal(*deal(0, 0, first), second)
        start[number[total, shown, ace, sorted((first, second)) == [1, 10]]] += p * q * r
    return Transitions.from_table(table), start, number


def test_blackjack_scores_are_exact():
    assert gym.spec("Blackjack-v1").kwargs == {"sab": True, "natural": False}
    spec = spec_of("Blackjack-v1")
    table, start, number = blackjack(sab=True)
    optimum, actions = optimal_return(table, start, 20)  # no hand takes 20 cards
    assert spec.optimal_score.score == pytest.approx(optimum, abs=1e-5)
    random = exact_return(table, start, np.full((len(start), 2), 0.5), 20)
    assert spec.random_score.score == pytest.approx(random, abs=1e-5)

    def rule(hard: int, soft: int) -> float:
        hits = [int(total < (soft if ace else hard)) for total, _, ace, _ in number]
        return exact_return(table, start, np.eye(2)[hits], 20)

    blind = max(rule(hard, soft) for hard in range(12, 19) for soft in range(16, 20))
    assert blind == pytest.approx(-0.0606, abs=1e-4)
    assert blind < spec.solved_at < optimum

    env = gym.make("Blackjack-v1", disable_env_checker=True)
    env.reset(seed=5)
    returns = []
    for _ in range(20_000):
        obs, _ = env.reset()
        over = False
        while not over:
            obs, reward, over, _, _ = env.step(int(actions[0][number[(*obs, False)]]) if obs[0] < 21 else 0)
        returns.append(reward)
    assert abs(np.mean(returns) - optimum) < 4 * np.std(returns) / np.sqrt(len(returns))


def test_blackjack_notes_name_the_other_rules():
    table, start, _ = blackjack(sab=False)
    assert optimal_return(table, start, 20)[0] == pytest.approx(-0.0466, abs=1e-4)
    assert "-0.0466" in spec_of("Blackjack-v1").notes
