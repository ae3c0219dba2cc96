"""Efficiency by a sum over every single step, which needs no trapezoids."""

from __future__ import annotations

import numpy as np
import pytest

from gymnast.metrics.quality import Judged, efficiency, first_solved, judged_in


def by_steps(points: list[tuple[int, float]], budget: int, random: float, threshold: float) -> float:
    """The mean height of the curve at the middle of every vec step."""
    x, y = zip((0, random), *points)
    middles = np.arange(budget) + 0.5
    return float((np.interp(middles, x, y).mean() - random) / (threshold - random))


@pytest.mark.parametrize(
    "points",
    [
        [(100, 50.0)],
        [(10, 22.0), (40, 480.0)],
        [(10, 22.0), (40, 480.0), (100, 30.0)],
        [(30, 5.0), (60, 700.0), (130, 0.0)],
    ],
)
def test_efficiency_is_the_mean_over_the_budget(points: list[tuple[int, float]]) -> None:
    judged = [Judged(at, score) for at, score in points]
    found = efficiency(reversed(judged), 100, 22.0, 475.0)
    assert found == pytest.approx(by_steps(points, 100, 22.0, 475.0), rel=1e-3, abs=1e-6)


def test_its_scale() -> None:
    """Random play all along is 0; who solves at once and stops there is close to 1; nobody knows without a scale."""
    assert efficiency([Judged(50, 22.0)], 100, 22.0, 475.0) == 0.0
    assert efficiency([Judged(1, 475.0)], 100_000, 22.0, 475.0) == pytest.approx(1.0, abs=1e-4)
    assert efficiency([Judged(1, -60.0)], 100, -500.0, -100.0) == pytest.approx(1.09, abs=0.01)
    assert efficiency([], 100, 22.0, 475.0) is None
    assert efficiency([Judged(1, 1.0)], 100, None, 475.0) is None
    assert efficiency([Judged(1, 1.0)], 100, 22.0, None) is None
    assert efficiency([Judged(1, 1.0)], 100, 22.0, 22.0) is None


def test_out_of_the_rows_of_an_older_run() -> None:
    rows = [
        {"vec_steps": 5, "eval/return_mean": None},
        {"vec_steps": 10, "eval/return_mean": 3.0, "time/seconds": 1.5, "train/solved": 0.0},
        {"vec_steps": 20, "eval/return_mean": 3.0, "eval/exact_return": 9.0, "time/seconds": 2.5, "train/solved": 1.0},
        {"vec_steps": 30, "eval/return_mean": 1.0, "time/seconds": 3.5, "train/solved": 1.0},
    ]
    found = judged_in(rows)
    assert [one.score for one in found] == [3.0, 9.0, 1.0]
    assert first_solved(found) == Judged(20, 9.0, True)
