"""The course of an episode for live charts: the numbers of every step, also of those whose picture nobody saw."""

from __future__ import annotations

from typing import Any

from gymnast.evaluation.stage import Stage
from gymnast.play.recording import Start, Step

MOST_STEPS = 2000
"""That wait to be told; of a page that does not look for so long the oldest are lost."""


class Course:
    """Collects what happened since it was last asked."""

    def __init__(self) -> None:
        self._fresh = True
        self._rows: list[tuple[float, float | None, dict[str, float]]] = []

    def attach(self, stage: Stage) -> None:
        """Its numbers come with the steps."""

    def begin(self, start: Start) -> None:
        """A chart begins anew with an episode."""
        self._fresh, self._rows = True, []

    def step(self, step: Step) -> None:
        """One step's reward, value and terms."""
        self._rows.append((step.reward, step.value, dict(step.terms)))
        del self._rows[:-MOST_STEPS]

    def news(self) -> dict[str, Any]:
        """The steps that nobody was told of yet, column by column; `fresh` ones begin an episode."""
        rows, fresh = self._rows, self._fresh
        self._rows, self._fresh = [], False
        names = list(dict.fromkeys(name for _, _, terms in rows for name in terms))
        return {
            "fresh": fresh,
            "rewards": [reward for reward, _, _ in rows],
            "values": [value for _, value, _ in rows],
            "terms": {name: [terms.get(name) for _, _, terms in rows] for name in names},
        }
