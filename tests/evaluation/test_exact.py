"""Exact evaluation of tabular policies: hand-computed chains, known optima, agreement with simulation."""

from __future__ import annotations

import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest
from optimal import optimal_return

from gymnast.evaluation.exact import (
    TabularModel,
    Transitions,
    exact_return,
    tabular_model,
    why_not_tabular,
)

# State 0: action 0 stays for 1; action 1 moves to state 1 for 0 with probability 1/4, else stays for 0.
# State 1: both actions end the episode, for 10 and for 2.
CHAIN = {
    0: {0: [(1.0, 0, 1.0, False)], 1: [(0.25, 1, 0.0, False), (0.75, 0, 0.0, False)]},
    1: {0: [(1.0, 1, 10.0, True)], 1: [(1.0, 1, 2.0, True)]},
}
START = np.array([1.0, 0.0])


def model_of(env_id: str, **kwargs) -> TabularModel:
    model = tabular_model(gym.make(env_id, **kwargs))
    assert model is not None
    return model


def uniform(model: TabularModel) -> np.ndarray:
    n_states, n_actions, _ = model.P.probability.shape
    return np.full((n_states, n_actions), 1.0 / n_actions)


def test_chain_by_hand():
    stay, half = np.array([[1.0, 0.0], [1.0, 0.0]]), np.full((2, 2), 0.5)
    assert exact_return(CHAIN, START, stay, 3) == 3.0
    # One step: 0.5. Two: 0.5 + 7/8 · 0.5 + 1/8 · 6.
    assert exact_return(CHAIN, START, half, 1) == 0.5
    assert exact_return(CHAIN, START, half, 2) == pytest.approx(0.5 + 7 / 8 * 0.5 + 1 / 8 * 6)
    assert exact_return(CHAIN, np.array([0.5, 0.5]), half, 1) == pytest.approx(0.5 * 0.5 + 0.5 * 6)
    assert exact_return(CHAIN, START, half, 0) == 0.0


def test_chain_optimum_depends_on_the_time_left():
    # One step left: stay, 1. Two left: try, 10/4 + 3/4 · 0 … against 1 + 1: try first and, still in 0, take 1.
    value, actions = optimal_return(CHAIN, START, 2)
    assert value == pytest.approx(0.25 * 10 + 0.75 * 1)
    assert actions.tolist() == [[1, 0], [0, 0]]
    policy = np.eye(2)[actions]  # [H, S, A]
    assert exact_return(CHAIN, START, policy, 2) == pytest.approx(value)


def test_chain_without_a_time_limit():
    # v = 1/2 · (1 + v) + 1/2 · (6/4 + 3/4 · v)
    half = np.full((2, 2), 0.5)
    assert exact_return(CHAIN, START, half, None) == pytest.approx(10.0)
    assert exact_return(CHAIN, START, np.array([[1.0, 0.0], [1.0, 0.0]]), None) == np.inf
    with pytest.raises(ValueError, match="give a horizon"):
        optimal_return(CHAIN, START, None)


def test_endless_but_free_state_is_finite():
    table = {0: {0: [(1.0, 1, -3.0, False)]}, 1: {0: [(1.0, 1, 0.0, False)]}}
    assert exact_return(table, START, np.ones((2, 1)), None) == -3.0


@pytest.mark.parametrize(
    ("env_id", "kwargs", "horizon", "optimum"),
    [
        ("FrozenLake-v1", {}, 100, 0.744190),
        ("FrozenLake-v1", {"is_slippery": False}, 100, 1.0),
        ("FrozenLake8x8-v1", {}, 200, 0.913220),
        ("FrozenLake8x8-v1", {"is_slippery": False}, 200, 1.0),
        ("FrozenLake-v1", {"map_name": "8x8"}, 100, 0.640719),
        ("FrozenLake-v1", {"map_name": "8x8", "max_episode_steps": 200}, 200, 0.913220),
        ("Taxi-v4", {}, 200, 7.93),
        ("Taxi-v4", {"is_rainy": True}, 200, 3.954575),
        ("CliffWalking-v1", {}, None, -13.0),
        ("CliffWalking-v1", {"max_episode_steps": 200}, 200, -13.0),
        ("CliffWalkingSlippery-v1", {}, None, -64.709176),
    ],
)
def test_known_optima(env_id, kwargs, horizon, optimum):
    model = model_of(env_id, **kwargs)
    assert model.horizon == horizon
    value, actions = optimal_return(model.P, model.initial_distribution, model.horizon)
    assert value == pytest.approx(optimum, abs=1e-6)
    n_actions = model.P.probability.shape[1]
    reached = exact_return(model.P, model.initial_distribution, np.eye(n_actions)[actions], model.horizon)
    assert reached == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "episodes"),
    [
        ("FrozenLake-v1", {}, 10_000),
        ("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.9, "reward_schedule": (5, -3, -1)}, 1_000),
        ("Taxi-v4", {"is_rainy": True, "max_episode_steps": 60}, 300),
        ("CliffWalkingSlippery-v1", {"max_episode_steps": 40}, 500),
    ],
)
def test_agrees_with_simulation_of_a_random_policy(env_id, kwargs, episodes):
    env = gym.make(env_id, disable_env_checker=True, **kwargs)
    model = tabular_model(env)
    assert model is not None
    rng = np.random.default_rng(7)
    policy = rng.dirichlet(np.ones(env.action_space.n), env.observation_space.n)
    cumulative = policy.cumsum(-1)
    returns = np.zeros(episodes)
    for episode in range(episodes):
        state, _ = env.reset(seed=episode)
        over = False
        while not over:
            action = min(int(cumulative[state].searchsorted(rng.random())), policy.shape[1] - 1)
            state, reward, terminated, truncated, _ = env.step(action)
            returns[episode] += reward
            over = terminated or truncated
    standard_error = returns.std(ddof=1) / np.sqrt(episodes)
    assert standard_error > 0
    exact = exact_return(model.P, model.initial_distribution, policy, model.horizon)
    assert abs(returns.mean() - exact) < 4 * standard_error


def test_policy_that_never_arrives():
    model = model_of("CliffWalking-v1")
    up = np.eye(4)[np.zeros(48, int)]
    assert exact_return(model.P, model.initial_distribution, up, None) == -np.inf
    assert exact_return(model.P, model.initial_distribution, up, 50) == -50.0
    # Unvisited states do not matter: the shortest way is fine however the rest of the policy circles.
    best = up.copy()
    best[24:35] = np.eye(4)[1]
    best[35] = np.eye(4)[2]
    assert exact_return(model.P, model.initial_distribution, best, None) == pytest.approx(-13.0)


def test_taxi_mask_is_the_state_changing_actions():
    env = gym.make("Taxi-v4")
    model = tabular_model(env)
    assert model is not None
    mask = np.array([env.unwrapped.action_mask(state) for state in range(500)], bool)
    changes = (model.P.next_state != np.arange(500)[:, None, None]).any(-1)
    np.testing.assert_array_equal(mask, changes)
    policy = mask / mask.sum(-1, keepdims=True)
    value = exact_return(model.P, model.initial_distribution, policy.astype(np.float32), model.horizon)
    assert value == pytest.approx(-186.179, abs=1e-3)


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        (lambda: gym.make("CartPole-v1"), "no transition table"),
        (lambda: gym.wrappers.TransformReward(gym.make("Blackjack-v1"), float), "TransformReward"),
        (lambda: gym.make("Taxi-v4", fickle_passenger=True), "fickle"),
        (lambda: gym.wrappers.TransformReward(gym.make("Taxi-v4"), float), "TransformReward"),
        (lambda: gym.wrappers.TransformObservation(gym.make("FrozenLake-v1"), lambda s: 15 - s, None), "TransformObs"),
    ],
)
def test_envs_the_table_does_not_describe(env, reason):
    made = env()
    assert tabular_model(made) is None
    assert reason in (why_not_tabular(made) or "")


def test_tightest_of_several_time_limits_counts():
    env = gym.wrappers.TimeLimit(gym.wrappers.RecordEpisodeStatistics(gym.make("FrozenLake-v1")), 30)
    model = tabular_model(env)
    assert model is not None and model.horizon == 30


def test_wrong_inputs_are_refused():
    with pytest.raises(ValueError, match="shape"):
        exact_return(CHAIN, START, np.ones((2, 3)) / 3, 5)
    with pytest.raises(ValueError, match="sum to 1"):
        exact_return(CHAIN, START, np.ones((2, 2)), 5)
    with pytest.raises(ValueError, match="state 1, action 0"):
        Transitions.from_table({**CHAIN, 1: {0: [(0.5, 1, 10.0, True)], 1: CHAIN[1][1]}})


def test_taxi_is_fast():
    model = model_of("Taxi-v4")
    policy = uniform(model)
    best = min(_seconds(lambda: exact_return(model.P, model.initial_distribution, policy, 200)) for _ in range(3))
    optimum = min(_seconds(lambda: optimal_return(model.P, model.initial_distribution, 200)) for _ in range(3))
    assert best < 0.1
    assert optimum < 0.1


def _seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def test_module_does_not_import_torch():
    code = "import sys, gymnast.evaluation.exact; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
