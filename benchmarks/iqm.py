"""The interquartile mean of scores and its stratified bootstrap interval (Agarwal et al. 2021, arXiv 2108.13264).

The package of that paper breaks on current pandas; the two functions are short. (Not named `statistics`: the scripts
here run with this folder first on the path and would hide the standard library's module of that name.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def interquartile_mean(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean of the middle half: the lowest and the highest quarter, rounded down to whole runs, are left out."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64), axis=axis)
    size = ordered.shape[axis]
    if size == 0:
        raise ValueError("no scores")
    cut = size // 4
    return np.take(ordered, np.arange(cut, size - cut), axis=axis).mean(axis=axis)


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
    means = interquartile_mean(np.concatenate(drawn, axis=1))
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)
