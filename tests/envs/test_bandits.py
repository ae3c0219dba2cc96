"""Bandits: the two forms are one game, regret is what theory calls regret, and policies learn them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gymnast.config.load import resolve
from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.families.bandits import AUER_12, HORIZON, REGISTERED
from gymnast.envs.families.bandits.vector import BanditVector
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.vector import VectorEnv
from gymnast.errors import UsageError
from gymnast.evaluation.exact import exact_return, tabular_model

BANDIT, RANDOM, DRIFTING, CONTEXTUAL = REGISTERED
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{env_id: (env_id, {}) for env_id in REGISTERED},
    "gaussian": (BANDIT, {"means": [0.0, 2.0, -1.0], "rewards": "gaussian", "noise": 0.5}),
    "last": (RANDOM, {"observe": "last", "rewards": "gaussian", "drift": 0.1}),
    "weights": (CONTEXTUAL, {"arms": 2, "weights": [[1, 0, 2], [0, 1, 1]], "context": 3}),
}


def config(kind: str, **changes: Any) -> EnvConfig:
    """The env section of one of the kinds."""
    env_id, kwargs = KINDS[kind]
    return EnvConfig(id=env_id, kwargs=kwargs, **changes)


def trace(envs: VectorEnv, actions: np.ndarray, row: Any) -> list[Any]:
    """Everything the contract delivers, step by step."""
    lines = []
    for chosen in actions:
        ended = envs.step(chosen, row)
        arrays = (row.obs, row.reward, row.terminated, row.truncated)
        episodes = [(e.index, np.asarray(e.final_obs).tolist(), e.ret, e.length, e.terminated, e.infos) for e in ended]
        lines.append((*(array.tobytes() for array in arrays), episodes))
    return lines


@pytest.mark.parametrize("kind", KINDS)
def test_the_vector_form_equals_single_envs_to_the_bit(kind: str) -> None:
    """Over ends and resets, infos included."""
    traces = []
    for how in ("native", "inprocess"):
        envs = make_envs(config(kind, time_limit=7, vectorization=how), 5)
        row = envs.new_row()
        envs.reset([3, 1, 4, 1, 5], row)
        actions = np.random.default_rng(0).integers(0, envs.action_space.n, (30, 5))
        traces.append([row.obs.tobytes(), *trace(envs, actions, row)])
        assert sum(len(line[-1]) for line in traces[-1][1:]) == 20
    assert traces[0] == traces[1]
    assert choose_vectorization(config(kind))[0] == "native"


@pytest.mark.parametrize("how", ["native", "inprocess"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_state_goes_on_exactly(kind: str, how: str) -> None:
    """In another vector, from the middle of an episode."""
    first, second = (make_envs(config(kind, time_limit=9, vectorization=how), 3) for _ in range(2))
    row, other = first.new_row(), second.new_row()
    first.reset([1, 2, 3], row)
    second.reset([7, 8, 9], other)
    actions = np.random.default_rng(1).integers(0, first.action_space.n, (40, 3))
    trace(first, actions[:14], row)
    assert first.exact_resume == "snapshot"
    state = first.save_state()
    second.load_state(json.loads(json.dumps(state)) if how == "inprocess" else state)
    assert trace(first, actions[14:], row) == trace(second, actions[14:], other)


def test_states_of_other_sizes_are_refused() -> None:
    """With both numbers."""
    envs = BanditVector(2, max_episode_steps=5)
    envs.reset([1, 2], envs.new_row())
    with pytest.raises(Exception, match="2 envs, this run has 3"):
        BanditVector(3, max_episode_steps=5).load_state(envs.save_state())


@pytest.mark.parametrize("env_id", REGISTERED)
def test_gymnasium_finds_nothing_wrong(env_id: str) -> None:
    """Its own checker, rendering included."""
    make_one(EnvConfig(id=env_id))  # registers
    check_env(gym.make(env_id, render_mode="rgb_array", disable_env_checker=True).unwrapped)


# --- regret and rewards ---------------------------------------------------------------------------------------------


def episodes(env_id: str, choose: Callable[[Any], np.ndarray], count: int, **kwargs: Any) -> tuple[np.ndarray, Any]:
    """Returns and regrets [count] of one episode each; `choose` sees the game."""
    envs = BanditVector(count, max_episode_steps=HORIZON, **(REGISTERED[env_id] | kwargs))
    row = envs.new_row()
    envs.reset(range(count), row)
    for _ in range(HORIZON):
        ended = envs.step(choose(envs._game), row)
    return np.array([e.ret for e in ended]), np.array([e.infos["regret"] for e in ended])


def test_regret_is_the_expected_reward_given_away() -> None:
    """Of the arms pulled, whatever they happened to pay; the step's info has it."""
    env = make_one(EnvConfig(id=BANDIT))
    env.reset(seed=0)
    infos = [env.step(arm)[-1] for arm in (0, 1, 4, 9, 0)]
    assert [info["regret"] for info in infos] == pytest.approx([0.0, 0.1, 0.3, 0.6, 0.6])
    assert {(info["best_arm"], info["best_mean"]) for info in infos} == {(0, 0.9)}


@pytest.mark.parametrize(("arm", "mean"), [(0, 0.9), (4, 0.7), (9, 0.6)])
def test_arms_pay_their_means(arm: int, mean: float) -> None:
    """Within five standard errors."""
    returns, regret = episodes(BANDIT, lambda game: np.full(len(game.means), arm), 200)
    assert abs(returns.mean() / HORIZON - mean) < 5 * np.sqrt(mean * (1 - mean) / (200 * HORIZON))
    assert regret == pytest.approx((0.9 - mean) * HORIZON)


def test_gaussian_arms_pay_their_means_and_noise() -> None:
    """Mean and spread of single rewards."""
    envs = BanditVector(5000, max_episode_steps=5, means=[3.0, -1.0], rewards="gaussian", noise=0.5)
    row = envs.new_row()
    envs.reset(range(5000), row)
    envs.step(np.ones(5000, np.int64), row)
    assert abs(row.reward.mean() + 1.0) < 5 * 0.5 / np.sqrt(5000)
    assert row.reward.std() == pytest.approx(0.5, rel=0.06)


@pytest.mark.parametrize("env_id", [RANDOM, DRIFTING])
def test_the_best_of_five_drawn_arms_is_five_sixths(env_id: str) -> None:
    """Also after drifting: reflection keeps the means uniform, so the preset's optimum is exact for both."""
    best: list[np.ndarray] = []

    def choose(game: Any) -> np.ndarray:
        best.append(game.means.max(1).copy())
        return game.means.argmax(1)

    returns, regret = episodes(env_id, choose, 600)
    assert not regret.any()
    for means in (best[0], best[-1]):
        assert abs(means.mean() - 5 / 6) < 5 * np.sqrt(5 / 252 / 600)
    assert abs(returns.mean() - HORIZON * 5 / 6) < 5 * returns.std() / np.sqrt(600)
    moved = np.abs(best[0] - best[-1]).mean()
    assert moved > 0.05 if env_id == DRIFTING else moved == 0
    assert resolve(f"{env_id}:ppo").config.spec.optimal_score.score == pytest.approx(HORIZON * 5 / 6, abs=1e-3)


def test_the_best_arm_for_a_point_on_the_circle() -> None:
    """The nearest of four directions; its expectation is the analytic one of the preset."""
    returns, regret = episodes(CONTEXTUAL, lambda game: game.means.argmax(1), 300)
    exact = HORIZON * (1 + np.sin(np.pi / 4) / (np.pi / 4)) / 2
    assert not regret.any()
    assert abs(returns.mean() - exact) < 5 * returns.std() / np.sqrt(300)
    assert resolve(f"{CONTEXTUAL}:ppo").config.spec.optimal_score.score == pytest.approx(exact, abs=1e-3)
    env = make_one(EnvConfig(id=CONTEXTUAL))
    (x, y), info = env.reset(seed=2)
    assert info["best_arm"] == int(np.argmax([x, y, -x, -y])) and np.hypot(x, y) == pytest.approx(1)


def test_scores_of_the_preset_are_the_arms() -> None:
    """And exact evaluation reads the same from the env's table."""
    spec = resolve(f"{BANDIT}:ppo").config.spec
    assert spec.optimal_score.score == pytest.approx(max(AUER_12) * HORIZON)
    assert spec.random_score.score == pytest.approx(np.mean(AUER_12) * HORIZON)
    model = tabular_model(make_one(EnvConfig(id=BANDIT)))
    assert model is not None and model.horizon == HORIZON
    for policy, score in ((np.eye(10)[:1], 180.0), (np.full((1, 10), 0.1), 144.0)):
        assert exact_return(model.P, model.initial_distribution, policy, model.horizon) == pytest.approx(score)


@pytest.mark.parametrize("env_id", REGISTERED)
def test_the_spec_card_is_of_this_env(env_id: str) -> None:
    """Labels, components, horizon, and the random score against uniform play."""
    spec, env = resolve(f"{env_id}:ppo").config.spec, make_one(EnvConfig(id=env_id))
    assert len(spec.actions) == env.action_space.n and spec.horizon == HORIZON == env.spec.max_episode_steps
    assert len(spec.observation) == max(1, int(np.prod(env.observation_space.shape)))
    rng = np.random.default_rng(0)
    returns, _ = episodes(env_id, lambda game: rng.integers(game.rules.arms, size=len(game.means)), 300)
    assert abs(returns.mean() - spec.random_score.score) < 5 * returns.std() / np.sqrt(300)
    assert spec.random_score.score < spec.solved_at < spec.optimal_score.score


@pytest.mark.parametrize("kwargs", [{"drift": 0.1}, {"means": None, "arms": 3}, {"observe": "last"}])
def test_only_one_state_has_a_table(kwargs: dict[str, Any]) -> None:
    assert tabular_model(make_one(EnvConfig(id=BANDIT, kwargs=kwargs))) is None


# --- what the player sees -------------------------------------------------------------------------------------------


def test_statistics_are_estimates_and_their_width() -> None:
    """Jeffreys' posterior mean and 1 ÷ √(n + 1), by hand."""
    env = make_one(EnvConfig(id=RANDOM))
    obs, _ = env.reset(seed=5)
    assert obs == pytest.approx(np.tile([0.5, 1.0], (5, 1)))
    paid = [env.step(2)[1] for _ in range(3)]
    obs = env.step(4)[0]
    assert obs[2] == pytest.approx([(sum(paid) + 0.5) / 4, 0.5])
    assert obs[0] == pytest.approx([0.5, 1.0]) and obs[4, 1] == pytest.approx(np.sqrt(0.5))


def test_old_rewards_fade() -> None:
    """With memory 0.5 a reward of two pulls ago counts a quarter."""
    env = make_one(EnvConfig(id=BANDIT, kwargs={"means": [1.0, 0.0], "observe": "statistics", "memory": 0.5}))
    env.reset(seed=0)
    for arm in (0, 1, 1):
        obs, *_ = env.step(arm)
    assert obs[0] == pytest.approx([(0.25 + 0.5) / 1.25, 1 / np.sqrt(1.25)])
    assert obs[1] == pytest.approx([0.5 / 2.5, 1 / np.sqrt(2.5)])


def test_the_last_pull() -> None:
    """One-hot arm and reward; nothing before the first."""
    env = make_one(EnvConfig(id=BANDIT, kwargs={"means": [1.0, 0.0, 1.0], "observe": "last"}))
    assert env.reset(seed=0)[0].tolist() == [0, 0, 0, 0]
    assert env.step(2)[0].tolist() == [0, 0, 1, 1]
    assert env.step(1)[0].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("env_id", "kwargs", "sentence"),
    [
        (BANDIT, {"means": [0.5, 1.5]}, "between 0 and 1"),
        (BANDIT, {"arms": 5}, "means are of 10 arms, not of 5"),
        (BANDIT, {"means": [0.5]}, "at least 2 arms"),
        (BANDIT, {"rewards": "cauchy"}, "bernoulli, gaussian"),
        (BANDIT, {"observe": "all"}, "nothing, last, statistics"),
        (BANDIT, {"memory": 2}, "memory between 0 and 1"),
        (BANDIT, {"wheels": 3}, "wheels"),
        (CONTEXTUAL, {"drift": 0.1}, "follow from its weights"),
        (CONTEXTUAL, {"context": 5}, "need weights"),
        (CONTEXTUAL, {"weights": [[0, 0]] * 4}, "none of them all zero"),
        ("gymnast/Bandits-v0", {}, "Did you mean 'gymnast/Bandit-v0'"),
    ],
)
def test_wrong_arguments_are_sentences(env_id: str, kwargs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make_envs(EnvConfig(id=env_id, kwargs=kwargs), 2)


# --- pictures and learning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "many"])
def test_pictures_follow_the_game(kind: str) -> None:
    """Same size all along, another picture after a pull, the same after none."""
    env_id, kwargs = KINDS.get(kind, (RANDOM, {"arms": 200}))
    env = make_one(EnvConfig(id=env_id, kwargs=kwargs), render_mode="rgb_array")
    env.reset(seed=1)
    first = env.render()
    assert first.dtype == np.uint8 and first.shape == (320, 480, 3) and (first == env.render()).all()
    env.step(1)
    assert (first != env.render()).any()
    assert make_one(EnvConfig(id=env_id, kwargs=kwargs)).unwrapped.render() is None


@pytest.mark.learning
@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_every_algorithm_finds_the_best_arm(algorithm: str, tmp_path: Any) -> None:
    """To within 2 of the optimum; regret falls and reaches the metrics."""
    from gymnast.metrics.sinks.jsonl import MetricRows
    from gymnast.training.train import train

    train(resolve(f"{BANDIT}:{algorithm}", ["eval.episodes=40"]), tmp_path)
    assert "identical" not in next(tmp_path.glob("*/log.txt")).read_text()  # the one state is; what it pays is not
    rows = list(MetricRows(next(tmp_path.glob("*/metrics.jsonl"))))
    assert rows[-1]["eval/exact_return"] >= 178
    # Expected return + regret is the optimum: the evaluation's own sample of arms must agree with the exact value.
    assert rows[-1]["eval/regret"] == pytest.approx(180 - rows[-1]["eval/exact_return"], abs=1.5)
    regrets = [row["rollout/regret"] for row in rows if row["rollout/regret"] is not None]
    assert regrets[-1] < regrets[0] < 36 * 1.3
