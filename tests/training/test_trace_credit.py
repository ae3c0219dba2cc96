"""Traces of trained runs: advantages in the reward scale and by the baseline that training had, not the raw rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gymnast
from gymnast import api
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.metrics.sinks.jsonl import MetricRows

EVALUATION = ("eval.episodes=1", "eval.n_envs=1", "eval.every=100000")


def trained(tmp_path: Path, *settings: str, env_steps: int) -> tuple[api.Agent, dict[str, Any]]:
    """The agent at the end of a short run, and the last row of its metrics."""
    result = gymnast.train(*settings, *EVALUATION, env_steps=env_steps, runs_dir=tmp_path)
    rows = list(MetricRows(result.run.metrics_path))
    return api.load(f"{result.run.id}/last", runs_dir=tmp_path), rows[-1]


def traced(agent: api.Agent, seed: int = 7) -> EpisodeTrace:
    """A sampled episode, as in training."""
    return record_episode(agent.policy, agent.config.env, seed=seed, deterministic=False, credit=agent.credit())


def returns_of(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted sums to the end, written out."""
    return np.array([sum(gamma**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))])


def test_scaled_rewards(tmp_path: Path) -> None:
    """Pendulum pays down to -16 per step; its critic learned from rewards near 1, and so advantages are of that size."""
    settings = ("Pendulum-v1:ppo", "algo.normalize_reward=true", "algo.n_steps=128", "env.n_envs=4")
    agent, row = trained(tmp_path, *settings, env_steps=2048)
    trace, algo = traced(agent), agent.config.algo
    assert not trace.terminated
    scale = row["train/reward_scale"]
    assert scale > 5
    gamma, lam = float(algo.gamma), float(algo.gae_lambda)  # type: ignore[arg-type, attr-defined]
    rewards = np.clip(np.array(trace.rewards) / scale, -algo.reward_clip, algo.reward_clip)
    expected, advantage = np.zeros(len(trace)), 0.0
    for t in reversed(range(len(trace))):  # cut off: the value of the final observation counts
        advantage = rewards[t] + gamma * trace.values[t + 1] - trace.values[t] + gamma * lam * advantage
        expected[t] = advantage
    np.testing.assert_allclose(trace.advantages, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(trace.returns, returns_of(rewards, gamma), rtol=1e-3, atol=1e-4)
    advantages = np.concatenate([traced(agent, seed).advantages for seed in range(4)])
    assert row["train/advantage_std"] / 3 < advantages.std() < 3 * row["train/advantage_std"]
    assert abs(advantages.mean() - row["train/advantage_mean"]) < 3 * row["train/advantage_std"]


@pytest.mark.parametrize("baseline", ["none", "mean"])
def test_reinforce_has_the_baseline_of_its_last_batch(baseline: str, tmp_path: Path) -> None:
    """With none the advantage is the return; with `mean` it is the return minus that of the last batch, not of this episode."""
    settings = ("CartPole-v1:reinforce", f"algo.baseline={baseline}", "env.n_envs=2", "algo.episodes_per_env=2")
    agent, row = trained(tmp_path, *settings, env_steps=300)
    trace, gamma = traced(agent), float(agent.config.algo.gamma)  # type: ignore[arg-type]
    returns = returns_of(np.array(trace.rewards), gamma)
    np.testing.assert_allclose(trace.returns, returns, rtol=1e-4)
    subtracted = row["train/return_target_mean"] if baseline == "mean" else 0.0
    np.testing.assert_allclose(trace.advantages, returns - subtracted, rtol=1e-3, atol=1e-3)
    assert abs(returns.mean() - row["train/return_target_mean"]) > 0.01  # another episode than those of the batch


def test_a_schedule_counts_as_it_stood_at_the_checkpoint(tmp_path: Path) -> None:
    """Gamma grew from 0.5 to 0.9; half-way it was 0.7."""
    settings = (
        "CartPole-v1:ppo",
        "algo.gamma={schedule: linear, start: 0.5, end: 0.9}",
        "algo.n_steps=32",
        "env.n_envs=4",
    )
    settings += ("algo.batch_size=64", "algo.normalize_reward=false")
    result = gymnast.train(
        *settings,
        *EVALUATION,
        "train.checkpoint_every=128",
        "train.keep_checkpoints=9",
        env_steps=512,
        runs_dir=tmp_path,
    )
    agent = api.load(f"{result.run.id}/step=256", runs_dir=tmp_path)
    trace = traced(agent)
    np.testing.assert_allclose(trace.returns, returns_of(np.array(trace.rewards), 0.7), rtol=1e-4)
