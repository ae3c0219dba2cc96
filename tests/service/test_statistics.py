"""The interquartile mean and its bootstrap interval."""

from __future__ import annotations

import numpy as np
import pytest

from gymnast.service.statistics import bootstrap_interval, interquartile_mean


def test_known_means() -> None:
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, 100.0])) == 2.5
    assert interquartile_mean(np.array([500.0, 0.0, 490.0, 480.0, 9999.0])) == 490.0  # middle three of five
    assert interquartile_mean(np.array([7.0])) == 7.0


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 25])
def test_equals_the_trimmed_mean_of_scipy(size: int) -> None:
    from scipy import stats

    scores = np.random.default_rng(size).normal(size=(3, size))
    np.testing.assert_allclose(interquartile_mean(scores), stats.trim_mean(scores, 0.25, axis=1))


def test_equal_scores_have_no_interval() -> None:
    assert bootstrap_interval([[500.0] * 5]) == (500.0, 500.0)


def test_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for trial in range(300):
        low, high = bootstrap_interval([generator.normal(10.0, 2.0, size=40)], resamples=500, seed=trial)
        inside += low <= 10.0 <= high
    assert 0.90 <= inside / 300 <= 0.985


def test_tasks_are_resampled_apart() -> None:
    # Two tasks far apart: mixed resampling would draw uneven numbers of each and give a wide interval.
    tasks = [[0.0] * 8, [100.0] * 8]
    assert bootstrap_interval(tasks) == (50.0, 50.0)


def test_the_same_seed_gives_the_same_interval() -> None:
    scores = [[1.0, 5.0, 2.0, 8.0, 3.0]]
    assert bootstrap_interval(scores, seed=3) == bootstrap_interval(scores, seed=3)
    assert bootstrap_interval(scores, confidence=0.5) != bootstrap_interval(scores, confidence=0.95)


def test_no_scores_is_an_error() -> None:
    with pytest.raises(ValueError, match="no scores"):
        interquartile_mean(np.array([]))
    with pytest.raises(ValueError, match="without scores"):
        bootstrap_interval([[1.0], []])
