"""One thing that speaks for or against a cause."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gymnast.metrics.alerts.alert import Alert
from gymnast.metrics.alerts.facts import Facts
from gymnast.metrics.alerts.watch import Watch


@dataclass(frozen=True)
class Evidence:
    """A sentence and its weight: how much more likely it makes the cause, as a logarithm; below zero speaks against it."""

    weight: float
    says: str


@dataclass
class Case:
    """What is known of a run: its config and what its metrics showed."""

    watch: Watch
    failure: str | None = None
    """The error that ended the run."""
    alerts: dict[str, Alert] = field(init=False)

    def __post_init__(self) -> None:
        self.alerts = {alert.id: alert for alert in self.watch.alerts}

    @property
    def facts(self) -> Facts:
        """What the run's config says."""
        return self.watch.facts

    @property
    def became_nan(self) -> bool:
        """Whether a loss or gradient was no number any more, in a row or as the error that ended the run."""
        return "not_finite" in self.alerts or (self.failure is not None and self.failure.startswith("NonFiniteError"))

    @property
    def is_bandit(self) -> bool:
        """Whether what is done now changes nothing later: such envs report their regret once an episode has ended."""
        return "rollout/regret" in self.watch.courses or "Bandit" in str(self.facts.get("env.id"))

    @property
    def score(self) -> float | None:
        """The latest score: random play is 0, solved is 1."""
        return self.watch.now.score()

    def last(self, metric: str) -> float | None:
        """The latest value of a metric that rules read."""
        course = self.watch.courses.get(metric)
        if course is None:
            return None
        return course.last

    def mean(self, metric: str) -> float | None:
        """Its mean over the run."""
        course = self.watch.courses.get(metric)
        if course is None:
            return None
        return course.mean

    def share(self, alert: str) -> float:
        """In which share of the rows an alert held."""
        found = self.alerts.get(alert)
        if found is None:
            return 0.0
        return found.count / max(1, self.watch.now.rows)

    def seen(self, alert: str, weight: float) -> list[Evidence]:
        """An alert as evidence: half its weight for a single row, all of it for one that held in a tenth of them."""
        found = self.alerts.get(alert)
        if found is None:
            return []
        strength = 0.5 + 0.5 * min(1.0, 10.0 * self.share(alert))
        return [Evidence(weight * strength, found.message)]

    def missing(self, alert: str, weight: float, says: str) -> list[Evidence]:
        """An alert that should have been raised and was not."""
        if alert in self.alerts:
            return []
        return [Evidence(-weight, says)]


def orders(value: float, reference: float) -> float:
    """How many powers of ten apart two positive numbers are."""
    if value > 0 and reference > 0:
        return math.log10(value / reference)
    return 0.0
