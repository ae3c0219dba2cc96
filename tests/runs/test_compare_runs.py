"""Runs side by side: what differs, who is best, and when that may be said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import finished_run

from gymnast.config.load import resolve
from gymnast.errors import UsageError
from gymnast.runs.compare import compare_runs
from gymnast.runs.store import Run


def run_of(root: Path, *overrides: str, rows: list[dict[str, Any]] | None = None, **status: Any) -> Run:
    """A run with a real resolved config."""
    run = finished_run(root)
    run.config_path.write_text(json.dumps(resolve("CartPole-v1:ppo", overrides).config.model_dump(mode="json")))
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows or []))
    run.update(**status)
    return run


def test_settings_results_and_the_best(tmp_path: Path) -> None:
    """Only keys that differ; the best is marked by the direction of the measure, also between equals."""
    course = [
        {"env_steps": 10, "time/seconds": 1.0, "train/entropy": 0.6, "train/solved": 0.0},
        {"env_steps": 20, "time/seconds": 2.0, "train/entropy": None, "train/solved": 1.0},
        {"env_steps": 30, "time/seconds": 3.0, "train/entropy": 0.2, "train/solved": 1.0},
    ]
    a = run_of(tmp_path, "algo.gamma=0.9", rows=course, last_return=480.0, best_return=500.0, wall_seconds=4.0)
    b = run_of(tmp_path, "algo.gamma=0.8", "train.seed=4", last_return=490.0, best_return=500.0, wall_seconds=2.0)
    c = run_of(tmp_path, "algo.gamma=0.8", rows=course[:1])
    found = compare_runs([a, b, c], ["train/entropy"])
    assert found.runs == (a.id, b.id, c.id) and found.same_env and found.protocol == ()
    assert found.settings == {"algo.gamma": (0.9, 0.8, 0.8), "train.seed": (0, 4, 0)}
    results = {measure.name: measure for measure in found.results}
    assert (results["evaluation"].values, results["evaluation"].best) == ((480.0, 490.0, None), (1,))
    assert results["best evaluation"].best == (0, 1)
    assert (results["env steps to solved"].values, results["env steps to solved"].best) == ((20, None, None), (0,))
    assert results["seconds to solved"].values == (2.0, None, None)
    assert (results["steps/s"].values, results["steps/s"].best) == ((16.0, 32.0, 32.0), (1, 2))
    assert results["train/entropy"].values == (0.2, None, 0.6)
    with pytest.raises(UsageError, match="Did you mean 'train/entropy'"):
        compare_runs([a, b], ["train/entrpy"])


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    """Returns of other envs, or measured otherwise."""
    a = run_of(tmp_path, last_return=1.0)
    b = run_of(tmp_path, "eval.deterministic=false", "env.time_limit=50", last_return=2.0)
    assert compare_runs([a, b]).protocol == ("env.time_limit", "eval.deterministic")
    other = run_of(tmp_path, last_return=3.0)
    config = other.config()
    config["env"]["id"] = "Acrobot-v1"
    other.config_path.write_text(json.dumps(config))
    found = compare_runs([a, other])
    assert not found.same_env
    assert all(measure.best == () for measure in found.results if measure.name != "steps/s")


def test_configs_of_another_version(tmp_path: Path) -> None:
    """Compared as they were saved; a run without metrics has none."""
    a, b = finished_run(tmp_path, seed=1), finished_run(tmp_path, seed=2)
    b.metrics_path.unlink()
    assert compare_runs([a, b]).settings == {"train.seed": (1, 2)}
