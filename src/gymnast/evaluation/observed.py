"""Which values the components of an observation really take, next to the declared ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.spaces import Observation

MANY = 64
"""Parts with more components than this (pictures, boards) are described as a whole."""


@dataclass(frozen=True)
class Component:
    """One number of the observation, or a whole part of it where it has many."""

    name: str
    low: float
    """Declared."""
    high: float
    smallest: float
    """Observed."""
    largest: float
    constant: int = 0
    """How many of its numbers never changed."""
    size: int = 1
    broken: bool = False
    """Whether NaN or infinity was seen."""

    @property
    def remark(self) -> str:
        """What is worth a look; empty when nothing is."""
        if self.broken:
            return "NaN or infinity"
        if self.smallest < self.low - 1e-6 or self.largest > self.high + 1e-6:
            return "leaves the declared range"
        if self.constant == self.size:
            return "constant"
        if self.constant:
            return f"{self.constant:,} of {self.size:,} constant"
        return ""

    def as_json(self) -> dict[str, Any]:
        """One component as plain data for `--json`."""
        return {
            "name": self.name,
            "declared": [self.low, self.high],
            "observed": [self.smallest, self.largest],
            "constant": self.constant,
            "size": self.size,
            "remark": self.remark,
        }


class ObservedRanges:
    """Smallest and largest value of every number of the observations seen."""

    def __init__(self, space: spaces.Space) -> None:
        if isinstance(space, spaces.Dict):
            self._parts = dict(space.spaces)
        else:
            self._parts = {"": space}
        self._low = {name: np.full(_shape(part), np.inf) for name, part in self._parts.items()}
        self._high = {name: np.full(_shape(part), -np.inf) for name, part in self._parts.items()}
        self._broken = {name: np.zeros(_shape(part), np.bool_) for name, part in self._parts.items()}

    def see(self, obs: Observation, slots: np.ndarray) -> None:
        """A batch of observations, of which the given slots count."""
        for name in self._parts:
            self._take(name, np.asarray(obs[name] if isinstance(obs, dict) else obs, np.float64)[slots])

    def see_final(self, obs: Any) -> None:
        """The last observation of an episode; None if the env was lost."""
        if obs is not None:
            for name in self._parts:
                self._take(name, np.asarray(obs[name] if isinstance(obs, dict) else obs, np.float64)[None])

    def _take(self, name: str, batch: np.ndarray) -> None:
        if len(batch):
            self._broken[name] |= ~np.isfinite(batch).all(0)
            np.fmin(self._low[name], np.nanmin(batch, 0), out=self._low[name])
            np.fmax(self._high[name], np.nanmax(batch, 0), out=self._high[name])

    def components(self) -> list[Component]:
        """One per number, or one per part with many of them."""
        return [component for name, part in self._parts.items() for component in self._of(name, part)]

    def _of(self, name: str, part: spaces.Space) -> list[Component]:
        low, high = self._low[name].ravel(), self._high[name].ravel()
        lows, highs = (bound.ravel() for bound in _declared(part))
        broken, constant = self._broken[name].ravel(), low == high
        if low.size > MANY:
            pieces = [slice(None)]
        else:
            pieces = [slice(i, i + 1) for i in range(low.size)]
        return [
            Component(
                name=_title(name, part) if low.size > MANY else _item(name, i, low.size),
                low=float(lows[piece].min()),
                high=float(highs[piece].max()),
                smallest=float(low[piece].min()),
                largest=float(high[piece].max()),
                constant=int(constant[piece].sum()),
                size=len(low[piece]),
                broken=bool(broken[piece].any()),
            )
            for i, piece in enumerate(pieces)
        ]


def _title(name: str, part: spaces.Space) -> str:
    return name or f"observation {'×'.join(map(str, part.shape or ()))}"


def _item(name: str, index: int, size: int) -> str:
    if size == 1:
        return name or "observation"
    if name:
        return f"{name}[{index}]"
    return str(index)


def _shape(space: spaces.Space) -> tuple[int, ...]:
    return tuple(space.shape or ())


def _declared(space: spaces.Space) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value by the space."""
    if isinstance(space, spaces.Box):
        return np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    if isinstance(space, spaces.Discrete):
        return np.zeros(()), np.asarray(float(space.n - 1))
    if isinstance(space, spaces.MultiDiscrete):
        return np.zeros(space.nvec.shape), np.asarray(space.nvec - 1, np.float64)
    return np.zeros(_shape(space)), np.ones(_shape(space))
