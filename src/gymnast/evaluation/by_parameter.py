"""Returns of an evaluation by what was drawn for its episodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gymnast.config.randomise import Choices, Drawn
from gymnast.metrics.catalogue import RETURN_BY

PARTS = 5
"""Equal parts of a range."""


@dataclass(frozen=True)
class Part:
    """The episodes whose parameter lay in one part of its range."""

    parameter: str
    label: str
    """`-12 … -11.2`, or the value itself."""
    episodes: int
    mean: float | None
    """Return; None without episodes."""
    std: float | None

    @property
    def metric(self) -> str:
        """Its name in the catalogue: `eval/return_by/gravity_-12_to_-11.2`."""
        return f"{RETURN_BY}{self.parameter}_{self.label.replace(' … ', '_to_').replace(' ', '_').replace('/', '_')}"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def by_parameter(
    randomise: Mapping[str, Drawn], drawn: Sequence[Mapping[str, Any]], returns: Sequence[float]
) -> list[Part]:
    """For each parameter the parts of its range in order; `drawn` and `returns` have one entry per episode."""
    found = []
    for name, spread in randomise.items():
        values = [one.get(name) for one in drawn]
        for label, holds in _parts(spread):
            inside = [ret for value, ret in zip(values, returns, strict=True) if value is not None and holds(value)]
            mean = math.fsum(inside) / len(inside) if inside else None
            found.append(Part(name, label, len(inside), mean, float(np.std(inside)) if inside else None))
    return found


def metric_names(randomise: Mapping[str, Drawn]) -> list[str]:
    """What an evaluation in such envs is going to log."""
    return [part.metric for part in by_parameter(randomise, [], [])]


def _parts(spread: Drawn) -> Iterator[tuple[str, Any]]:
    """Labels, and whether a value belongs there."""
    if isinstance(spread, Choices):
        for choice in dict.fromkeys(spread.choices):
            yield _text(choice), lambda value, choice=choice: value == choice
        return
    if spread.low == spread.high:
        yield _text(spread.low), lambda value: True
        return
    edges = np.linspace(spread.low, spread.high, PARTS + 1).tolist()
    for k, (low, high) in enumerate(pairwise(edges)):
        first, last = k == 0, k == PARTS - 1

        def holds(value: float, low: float = low, high: float = high, first: bool = first, last: bool = last) -> bool:
            return (first or value >= low) and (last or value < high)

        yield f"{_text(low)} … {_text(high)}", holds


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
