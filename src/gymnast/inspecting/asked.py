"""What of an episode is to be recorded, and how it is to be played."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One episode."""

    seed: int = 0
    deterministic: bool = True
    temperature: float = 1.0
    """Of sampled actions: below 1 they are more decided, above it more random."""
    most_steps: int | None = None
    """Where the episode is cut off for the inspector."""
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    """On top of the env's own."""
    coefficients: dict[str, float] = field(default_factory=dict)
    """`gamma` and `gae_lambda` by which returns and advantages are computed, where they are not the run's own."""
    forced: dict[int, Any] = field(default_factory=dict)
    """Actions by step that are taken whatever the policy says."""
    see: bool = False
    """Whether to look into the network of an image policy."""
