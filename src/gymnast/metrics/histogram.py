"""How values are spread, as counts between edges: what trackers draw as a histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Histogram:
    """`counts[i]` values lie from `edges[i]` to `edges[i + 1]`."""

    counts: Sequence[float]
    edges: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{len(self.counts)} counts need {len(self.counts) + 1} edges, not {len(self.edges)}")

    @property
    def centres(self) -> list[float]:
        """The middle of every bin."""
        return [(low + high) / 2 for low, high in zip(self.edges, self.edges[1:])]

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {"counts": list(self.counts), "edges": list(self.edges)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Histogram:
        """From `as_json`; a ValueError or KeyError if it is none."""
        return Histogram([float(count) for count in data["counts"]], [float(edge) for edge in data["edges"]])
