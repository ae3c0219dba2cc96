"""Runs with an intrinsic reward resume to the bit: predictor, target, statistics and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_alike import Watcher, assert_same_end, differences, resume, run, small

import gymnast
from gymnast.metrics.sinks.jsonl import MetricRows

RND = {"weight": 1.0, "first_layer": 16, "further_layers": [16], "features": 8}
POLICIES: dict[str, dict[str, Any]] = {"plain": {}, "memory": {"memory": "lstm", "memory_size": 8}}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_stop_and_resume_equals_the_whole_run(algorithm: str, policy: str, tmp_path: Path) -> None:
    def config() -> Any:
        settings = {"hidden": [8], **POLICIES[policy]}
        return small(algorithm, {"id": "CartPole-v1"}, algo={"rnd": RND}, policy=settings)

    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole, stopped = run(config(), tmp_path, straight), run(config(), tmp_path, before)
    finished = resume(config(), stopped.run, after)
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)
    rows = list(MetricRows(whole.run.metrics_path))
    assert all(row["rollout/intrinsic_reward"] > 0 and row["train/rnd_loss"] > 0 for row in rows)
    agent = gymnast.load(str(whole.run.folder))
    assert len(agent.evaluate(2).returns) == 2  # the intrinsic value is part of the policy
