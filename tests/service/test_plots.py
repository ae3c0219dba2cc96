"""Which lines a plot has, and what they show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_runs import finished_run

from gymnast.config.load import resolve
from gymnast.errors import GymnastError, UsageError
from gymnast.runs.store import Run
from gymnast.service.plots import plot, write_charts
from gymnast.service.smoothing import smoothed

RETURN = "rollout/return_mean"


def run_of(root: Path, *overrides: str, returns: list[float]) -> Run:
    run = finished_run(root, 1.0)
    run.config_path.write_text(json.dumps(resolve("CartPole-v1:ppo", overrides).config.model_dump(mode="json")))
    rows = [
        {"env_steps": 8 * k, "vec_steps": k, RETURN: value, "time/seconds": k / 10, "train/entropy": -value}
        for k, value in enumerate(returns, start=1)
    ]
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def test_seeds_are_one_line_with_a_band_and_settings_are_lines(tmp_path: Path) -> None:
    seeds = [run_of(tmp_path, f"train.seed={k}", returns=[10.0 * k + i for i in range(20)]) for k in range(1, 5)]
    other = run_of(tmp_path, "algo.gamma=0.5", returns=[3.0] * 20)
    (chart,) = plot([*seeds, other])
    assert chart.title == f"{RETURN} · CartPole-v1" and chart.threshold == 475
    first, second = chart.lines
    assert first.label == "CartPole-v1:ppo algo.gamma=0.985 (4 seeds)" and first.low is not None
    # The interquartile mean of 10, 20, 30, 40 leaves out the first and the last.
    np.testing.assert_allclose(first.y, np.linspace(25, 44, len(first.y)))
    assert (first.low <= first.y).all() and (first.y <= first.high).all()
    assert second.low is None and set(second.y) == {3.0}
    (single,) = plot([*seeds, other], each=True)
    assert len(single.lines) == 5 and all(line.low is None for line in single.lines)
    assert sorted({line.label.split()[-1] for line in single.lines}) == ["0", "1", "2", "3", "4"]


def test_names_patterns_axes_and_aliases(tmp_path: Path) -> None:
    run = run_of(tmp_path, returns=[1.0, 2.0, 3.0])
    (chart,) = plot([run], ["train/entropy_loss"], axis="time")
    assert chart.x_label == "seconds" and chart.lines[0].x.tolist() == [0.1, 0.2, 0.3]
    assert chart.lines[0].y.tolist() == [1.0, 2.0, 3.0]  # SB3's has the other sign
    assert chart.threshold is None
    assert [one.title.split(" ")[0] for one in plot([run], ["r*/*", "train/*"])] == [RETURN, "train/entropy"]


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    run, silent = run_of(tmp_path, returns=[1.0]), finished_run(tmp_path, None)
    silent.metrics_path.unlink()
    with pytest.raises(UsageError, match="Unknown metric 'rollout/retrun_mean'. Did you mean"):
        plot([run], ["rollout/retrun_mean"])
    with pytest.raises(UsageError, match="None of these runs has a value of train/approx_kl. They log"):
        plot([run], ["train/approx_kl"])
    with pytest.raises(UsageError, match=f"Nothing has been logged yet by {silent.id}"):
        plot([silent])
    with pytest.raises(UsageError, match=r"written as .png, .pdf, .svg or .html"):
        write_charts(plot([run]), tmp_path / "curve.jpg")
    with pytest.raises(GymnastError, match="Cannot write"):
        write_charts(plot([run]), run.config_path / "curve.svg")
    assert not list(tmp_path.glob("curve*"))


def test_smooth_keeps_the_place_of_a_step(tmp_path: Path) -> None:
    """A running mean would move it to the right."""
    x = np.arange(1000.0)
    sx, sy = smoothed(x, (x >= 500).astype(float))
    assert abs(float(np.interp(0.5, sy, sx)) - 499.5) < 3
    rng = np.random.default_rng(0)
    _, noise = smoothed(x, rng.normal(size=1000))
    assert noise.std() < 0.35 and len(noise) == 400
    (chart,) = plot([run_of(tmp_path, returns=[0.0, 9.0] * 20)], smooth=True)
    faint, line = chart.lines
    assert faint.faint and not line.faint and np.ptp(faint.y) == 9 and chart.legend == [line]
