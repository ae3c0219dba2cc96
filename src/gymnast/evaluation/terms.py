"""What a reward is made of, where an env says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

PREFIX = "reward_"
"""How the keys of `info` begin in envs that tell the parts of their reward (Gymnasium's MuJoCo envs do)."""


def reward_terms(info: Mapping[str, Any]) -> dict[str, float]:
    """The parts of the last reward: `info["reward_terms"]`, else the numbers named `reward_…`."""
    told = info.get("reward_terms")
    if not isinstance(told, Mapping):
        told = {name: part for name, part in info.items() if str(name).startswith(PREFIX)}
    return {str(name): float(part) for name, part in told.items() if _is_number(part)}


def _is_number(part: Any) -> bool:
    return isinstance(part, (int, float, np.number)) and not isinstance(part, bool)
