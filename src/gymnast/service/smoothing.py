"""Noisy curves made smooth, without moving them to the right as a running mean does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
BINS = 400
WIDTH = 0.015
"""Standard deviation of the bell that neighbours are weighted by, as a share of the axis."""


def smoothed(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Means over neighbours, weighted by a bell; as many points as there were, at most `BINS`.

    Points are averaged per stretch of the axis first, so that a long run takes no longer.
    """
    if len(x) < 3 or x[-1] <= x[0]:
        return x, y
    place = np.minimum(((x - x[0]) / (x[-1] - x[0]) * BINS).astype(int), BINS - 1)
    count = np.bincount(place, minlength=BINS).astype(np.float64)
    total = np.bincount(place, weights=y, minlength=BINS)
    middle = np.bincount(place, weights=x, minlength=BINS)
    there = count > 0
    centre, weight = middle[there] / count[there], count[there]
    distance = (centre[:, None] - centre[None, :]) / (WIDTH * (x[-1] - x[0]))
    bell = np.exp(-0.5 * distance**2) * weight[None, :]
    return centre, (bell @ (total[there] / weight)) / bell.sum(axis=1)
