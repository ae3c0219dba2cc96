"""Fewer points for a chart, without losing its peaks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def thinned(x: NDArray[np.float64], y: NDArray[np.float64], points: int) -> NDArray[np.int64]:
    """Which points to keep: the first, the last, and the lowest and highest of each stretch of x. At most `points`, or 4."""
    size = len(x)
    if size <= max(points, 4):
        return np.arange(size)
    stretches = max(1, (points - 2) // 2)
    width = (x[-1] - x[0]) / stretches
    if width > 0:
        stretch = np.minimum((x - x[0]) // width, stretches - 1)
    else:  # every point lies at the same x
        stretch = np.arange(size) * stretches // size
    order = np.lexsort((y, stretch))
    edges = np.flatnonzero(np.diff(stretch[order])) + 1
    lowest = order[np.concatenate([[0], edges])]
    highest = order[np.concatenate([edges - 1, [size - 1]])]
    return np.unique(np.concatenate([[0], lowest, highest, [size - 1]]))
