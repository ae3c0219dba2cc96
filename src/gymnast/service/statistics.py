"""Scores over seeds: the interquartile mean and its bootstrap interval (Agarwal et al. 2021, arXiv 2108.13264).

The package of that paper breaks on current pandas; the functions are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
CHUNK = 4_000_000
"""Resampled numbers in memory at once."""


@dataclass(frozen=True)
class Score:
    """One result over the seeds of a group."""

    values: tuple[float, ...]
    mean: float
    iqm: float
    low: float
    high: float
    """Bounds of the 95 % interval of the interquartile mean; both are the mean of a single run, which has no interval."""


def score_of(values: Sequence[float]) -> Score | None:
    """The score of these runs; None if no run has one."""
    if not values:
        return None
    low, high = bootstrap_interval([values])
    return Score(tuple(values), float(np.mean(values)), float(interquartile_mean(np.asarray(values))), low, high)


def interquartile_mean(scores: Numbers, axis: int = -1) -> Numbers:
    """Mean of the middle half: the lowest and the highest quarter, rounded down to whole runs, are left out."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64), axis=axis)
    size = ordered.shape[axis]
    if size == 0:
        raise ValueError("no scores")
    cut = size // 4
    return np.asarray(np.take(ordered, np.arange(cut, size - cut), axis=axis).mean(axis=axis))


def bootstrap_interval(
    strata: Sequence[Sequence[float]], *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the interquartile mean over all scores, resampling the runs of each task (stratum) apart."""
    generator = np.random.default_rng(seed)
    drawn = []
    for stratum in strata:
        scores = np.asarray(stratum, dtype=np.float64)
        if scores.size == 0:
            raise ValueError("a task without scores")
        drawn.append(scores[generator.integers(scores.size, size=(resamples, scores.size))])
    low, high = _bounds(interquartile_mean(np.concatenate(drawn, axis=1)), confidence, axis=0)
    return float(low), float(high)


def bands(
    curves: Numbers, *, confidence: float = 0.95, resamples: int = 1_000, seed: int = 0
) -> tuple[Numbers, Numbers, Numbers]:
    """Interquartile mean of curves [runs, points] at every point, and the bounds of its interval.

    Whole runs are resampled, the same ones for all points, so that a band is one of curves and not of points.
    """
    runs, points = curves.shape
    drawn = np.random.default_rng(seed).integers(runs, size=(resamples, runs))
    low, high = np.empty(points), np.empty(points)
    width = max(1, CHUNK // (resamples * runs))
    for begin in range(0, points, width):
        part = slice(begin, begin + width)
        low[part], high[part] = _bounds(interquartile_mean(curves[:, part][drawn], axis=1), confidence, axis=0)
    return interquartile_mean(curves, axis=0), low, high


def _bounds(means: Numbers, confidence: float, *, axis: int) -> tuple[Numbers, Numbers]:
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=axis)
    return low, high
