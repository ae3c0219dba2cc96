"""What kind of bandit it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

REWARDS = ("bernoulli", "gaussian")
OBSERVE = ("nothing", "last", "statistics")


@dataclass(frozen=True, eq=False)
class Rules:
    """The arguments of a bandit, checked. `A` arms, `D` numbers in a context."""

    arms: int = 0
    """How many; as many as there are means or weights, else 10, when not given."""
    means: Sequence[float] | None = None
    """Expected reward of each arm, the same in all episodes; None draws new ones for every episode."""
    rewards: str = "bernoulli"
    """`bernoulli` pays 1 with the arm's mean as its probability, `gaussian` the mean plus noise."""
    noise: float = 1.0
    """Standard deviation of gaussian rewards."""
    drift: float = 0.0
    """Standard deviation of the step each mean takes after every pull; means of bernoulli arms are reflected at 0 and 1."""
    observe: str = "nothing"
    """`nothing`, the `last` arm and reward, or for each arm an estimate and its uncertainty (`statistics`)."""
    memory: float = 1.0
    """Share of the statistics kept from one pull to the next: below 1 old rewards fade, for means that drift."""
    context: int = 0
    """Numbers in the context, a point on the unit sphere drawn before every pull; 0 is a bandit without one."""
    weights: Sequence[Sequence[float]] | None = None
    """One direction per arm: its mean is (1 + direction · context) / 2. Evenly around the circle when not given."""
    directions: np.ndarray = field(init=False, repr=False, default_factory=lambda: np.zeros((0, 0)))
    """`[A, D]` weights of unit length."""

    def __post_init__(self) -> None:
        """Check the arguments, with a sentence for each mistake."""
        if self.means is not None:
            self._set("means", tuple(float(mean) for mean in self.means))
        for name in ("means", "weights"):
            given = getattr(self, name)
            if given is not None and self.arms not in (0, len(given)):
                raise ValueError(f"{name} are of {len(given)} arms, not of {self.arms}: give as many, or {name}=None")
            self._set("arms", self.arms if given is None else len(given))
        self._set("arms", self.arms or 10)
        if self.arms < 2:
            raise ValueError(f"a bandit needs at least 2 arms (got {self.arms})")
        for name, known in (("rewards", REWARDS), ("observe", OBSERVE)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)} (got {getattr(self, name)!r})")
        if self.noise < 0 or self.drift < 0 or not 0 <= self.memory <= 1:
            raise ValueError("noise and drift must be at least 0, memory between 0 and 1")
        if self.means is not None and self.bounded and not all(0 <= mean <= 1 for mean in self.means):
            raise ValueError(f"means of bernoulli arms are probabilities, between 0 and 1 (got {list(self.means)})")
        self._check_context()

    def _check_context(self) -> None:
        if self.context == 0 and self.weights is None:
            return
        if self.means is not None or self.drift or self.observe != "nothing":
            raise ValueError("the means of a contextual bandit follow from its weights: no means, drift or observe")
        if self.weights is not None:
            directions = np.array(self.weights, np.float64)
            self._set("context", directions.shape[-1])
        elif self.context == 2:
            angles = 2 * np.pi * np.arange(self.arms) / self.arms
            directions = np.stack([np.cos(angles), np.sin(angles)], 1)
        else:
            raise ValueError(f"contexts of {self.context} numbers need weights: one row of {self.context} per arm")
        if directions.ndim != 2 or not np.linalg.norm(directions, axis=1).all():
            raise ValueError("weights must be one row of numbers per arm, all of one length, none of them all zero")
        self._set("directions", directions / np.linalg.norm(directions, axis=1, keepdims=True))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def bounded(self) -> bool:
        """Whether rewards and means lie between 0 and 1."""
        return self.rewards == "bernoulli"

    @property
    def prior(self) -> float:
        """What is expected of an arm that was never pulled: the mean of the drawn means."""
        if self.bounded:
            return 0.5
        return 0.0

    @property
    def observation_space(self) -> spaces.Space:
        """One state, or numbers."""
        if self.context:
            return spaces.Box(-1.0, 1.0, (self.context,), np.float32)
        if self.observe == "nothing":
            return spaces.Discrete(1)
        low, high = (0.0, 1.0) if self.bounded else (-np.inf, np.inf)
        shape: tuple[int, ...] = (self.arms + 1,)
        if self.observe == "statistics":
            shape = (self.arms, 2)
        lows, highs = np.zeros(shape, np.float32), np.ones(shape, np.float32)
        rewards = -1 if self.observe == "last" else slice(0, 1)
        lows[..., rewards] = low
        highs[..., rewards] = high
        return spaces.Box(lows, highs, dtype=np.float32)
