"""What an action mask says about one action."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces


def is_possible(action: Any, mask: np.ndarray, space: spaces.Space) -> bool:
    """Whether the mask, one entry per choice, allows an action as the env takes it."""
    if isinstance(space, spaces.Discrete):
        return bool(mask[int(action) - int(space.start)])
    if isinstance(space, spaces.MultiDiscrete):
        sizes, chosen = np.ravel(space.nvec), np.ravel(action) - np.ravel(space.start)
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        return bool(np.asarray(mask)[starts + chosen].all())
    return True
