"""Seeds as groups, and their curves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_runs import finished_run

from gymnast.config.load import resolve
from gymnast.runs.store import Run
from gymnast.service.compare import group_curves, group_runs, side_by_side
from gymnast.service.plain import plain
from gymnast.service.statistics import bands, bootstrap_interval, interquartile_mean


def run_of(root: Path, *overrides: str, score: float = 1.0, slope: float = 1.0, steps: int = 10) -> Run:
    """A run whose return grows by `slope` per vec step."""
    run = finished_run(root, score)
    run.config_path.write_text(json.dumps(resolve("CartPole-v1:ppo", overrides).config.model_dump(mode="json")))
    rows = [{"env_steps": 8 * k, "vec_steps": k, "rollout/return_mean": slope * k} for k in range(1, steps + 1)]
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def test_seeds_of_one_config_are_a_group(tmp_path: Path) -> None:
    """Whatever they ran on; another setting is another group, and is in its label."""
    same = [run_of(tmp_path, f"train.seed={seed}", "env.n_workers=2", score=float(seed)) for seed in (3, 4)]
    same.append(run_of(tmp_path, "train.seed=9", "env.vectorization=inprocess", score=9.0))
    other = run_of(tmp_path, "algo.gamma=0.5")
    first, second = group_runs([same[0], other, *same[1:]])
    assert (first.runs, first.seeds) == (tuple(run.id for run in same), (3, 4, 9))
    assert first.settings == {"algo.gamma": 0.985} and second.settings == {"algo.gamma": 0.5}
    assert (first.label, second.label) == ("CartPole-v1:ppo algo.gamma=0.985", "CartPole-v1:ppo algo.gamma=0.5")
    assert first.best is not None
    assert first.best.values == (3.0, 4.0, 9.0)
    assert first.best.mean == pytest.approx(16 / 3)
    assert (first.best.low, first.best.high) == bootstrap_interval([(3.0, 4.0, 9.0)])
    assert group_runs(same)[0].label == "CartPole-v1:ppo"
    json.dumps(plain(group_runs(same)), allow_nan=False)


def test_what_is_shown_of_a_run_makes_no_group_of_its_own(tmp_path: Path) -> None:
    """Trackers and films change no number; the window of running means does."""
    shown = ["log.sinks=[tensorboard]", "log.capture_video=true", "log.diagnostics_every=null"]
    runs = [run_of(tmp_path, "train.seed=3"), run_of(tmp_path, "train.seed=4", *shown)]
    assert len(group_runs(runs)) == 1
    assert len(group_runs([*runs, run_of(tmp_path, "log.window=7")])) == 2


def test_a_group_without_scores_has_none(tmp_path: Path) -> None:
    (group,) = group_runs([finished_run(tmp_path, None)])
    assert group.best is None


def test_curves_of_a_group(tmp_path: Path) -> None:
    """Read off between points, not beyond them: a run that ended early leaves the mean, and it is said how many are left."""
    runs = [run_of(tmp_path, f"train.seed={seed}", slope=slope) for seed, slope in enumerate((1.0, 2.0, 3.0))]
    short = run_of(tmp_path, "train.seed=9", slope=10.0, steps=4)
    (curve,) = group_curves([*runs, short], "rollout/return_mean", points=10)
    assert curve.x.tolist() == list(range(1, 11))
    assert curve.runs == (4, 4, 4, 4, 3, 3, 3, 3, 3, 3)
    np.testing.assert_allclose(curve.mean, [k * 4 if k <= 4 else k * 2 for k in range(1, 11)])
    np.testing.assert_allclose(curve.iqm[4:], 2 * curve.x[4:])
    assert (curve.low <= curve.iqm).all() and (curve.iqm <= curve.high).all()
    assert curve.low[-1] >= 10 and curve.high[-1] <= 30 and curve.low[-1] < curve.high[-1]
    on_steps = group_curves(runs, "rollout/return_mean", axis="env_steps", points=3)[0]
    assert on_steps.x.tolist() == [8, 44, 80]
    assert group_curves(runs, "eval/return_mean") == []


def test_a_band_is_the_interval_of_each_point() -> None:
    """Resampled in pieces or at once, the numbers are those of the plain definition."""
    curves = np.random.default_rng(1).normal(size=(5, 7))
    iqm, low, high = bands(curves, resamples=400, seed=2)
    drawn = np.random.default_rng(2).integers(5, size=(400, 5))
    for point in range(7):
        means = interquartile_mean(curves[drawn, point])
        assert (low[point], high[point]) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))
        assert iqm[point] == interquartile_mean(curves[:, point])


def test_side_by_side_warns(tmp_path: Path) -> None:
    first, sampled = run_of(tmp_path), run_of(tmp_path, "eval.deterministic=false")
    assert side_by_side([first, run_of(tmp_path)]).warning is None
    assert side_by_side([first, run_of(tmp_path)]).threshold == 475
    assert side_by_side([first, sampled]).warning == (
        "Their returns are not measured alike: eval.deterministic differ."
    )
    other = finished_run(tmp_path, 1.0, env="Acrobot-v1")
    found = side_by_side([first, other])
    assert "different environments" in str(found.warning) and found.threshold is None
