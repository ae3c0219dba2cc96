"""Runs with values in a unit of their own: exact resume, and rewards of any size learn alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs_alike import Watcher, assert_same_end, differences, resume, run, small

from gymnast.config.load import resolve
from gymnast.metrics.sinks.jsonl import MetricRows

LARGE = [{"id": "reward_scale", "factor": 1e4}]


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_stop_and_resume_equals_the_whole_run(algorithm: str, tmp_path: Path) -> None:
    def config():
        env = {"id": "CartPole-v1", "wrappers": LARGE, "time_limit": 30}
        return small(algorithm, env, algo={"normalize_value": "popart"})

    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole, stopped = run(config(), tmp_path, straight), run(config(), tmp_path, before)
    finished = resume(config(), stopped.run, after)
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)
    scales = [row["train/value_scale"] for row in MetricRows(whole.run.metrics_path)]
    assert len(set(scales)) > 2 and min(scales) > 1e3


@pytest.mark.learning
def test_large_rewards_learn_as_small_ones_do(tmp_path: Path) -> None:
    """CartPole with rewards × 10,000, which the critic cannot follow in their own unit."""
    found = {}
    for mode in ("popart", "off"):
        settings = {"algo.normalize_value": mode, "algo.normalize_reward": False, "env.wrappers": LARGE}
        settings |= {"train.env_steps": 40_000, "log.video": False, "policy.shared_trunk": True}
        evaluation = run(resolve("CartPole-v1:ppo", settings=settings), tmp_path).evaluation
        assert evaluation is not None
        found[mode] = evaluation.mean
    assert found["popart"] >= 400
    assert found["off"] < 300
