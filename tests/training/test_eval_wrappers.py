"""Evaluation with other wrappers than training: `eval.env.wrappers`."""

from __future__ import annotations

from pathlib import Path

from runs_alike import run, small

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.training.evaluating.setup import eval_env_config

STICKY = {"id": "sticky_actions", "args": {"probability": 0.5}}


def test_sticky_actions_in_evaluation_alone(tmp_path: Path) -> None:
    """Training steps natively, which has no place for the wrapper; the evaluation then steps one by one."""
    env = {"id": "CartPole-v1", "time_limit": 40, "vectorization": "native"}
    resolved = small("ppo", env, env_steps=64, eval={"every": 64, "episodes": 2, "env": {"wrappers": [STICKY]}})
    evaluation, changed = eval_env_config(resolved.config)
    assert (evaluation.vectorization, changed) == ("inprocess", {"wrappers": [STICKY]})
    result = run(resolved, tmp_path)
    assert result.evaluation is not None
    assert result.evaluation.differences == {"wrappers": [STICKY]}


def test_frames_are_counted_in_the_metrics(tmp_path: Path) -> None:
    """env_steps × skip; null where the policy decides."""
    for skip, frames in (({"skip": 4}, 256), ({"skip": [1, 2]}, 96), ({"choices": [1, 2]}, None)):
        env = {"id": "CartPole-v1", "wrappers": [{"id": "frame_skip", **skip}]}
        rows = list(MetricRows(run(small("ppo", env, env_steps=64), tmp_path).run.folder / "metrics.jsonl"))
        assert [row["frames"] for row in rows] == [frames]
