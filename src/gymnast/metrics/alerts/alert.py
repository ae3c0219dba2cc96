"""What a rule is, and what it raises."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gymnast.metrics.alerts.course import Now

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
"""`info` is worth knowing, a `warning` costs return, an `error` is something that cannot be."""
Numbers = dict[str, float]


@dataclass(frozen=True)
class Finding:
    """One row in which a rule holds: the numbers that say so."""

    numbers: Numbers
    metrics: tuple[str, ...] | None = None
    """The rows it belongs to, where they are not those of the rule."""


Check = Callable[["Now", float], Finding | Numbers | None]
"""A pure function of what is known at one row and the threshold: what it found, or None."""
Advise = Callable[["Now", Numbers], tuple[str, ...]]


@dataclass(frozen=True)
class Rule:
    """One thing that can go wrong."""

    id: str
    severity: Severity
    metrics: tuple[str, ...]
    """What it reads first of all, and where it is shown. It stays silent while one of them has never been logged."""
    says: str
    """The sentence, with the numbers of a finding in braces."""
    means: str
    """Why that is bad, for somebody who sees it for the first time."""
    advise: Advise
    """What to change, most promising first; each line names the config key."""
    threshold: float
    """The number that `alerts.rules.ID.threshold` replaces."""
    check: Check
    every_row: bool = False
    """Whether it is evaluated in every row; else only in rows that have a new value of its first metric."""


def rule(
    name: str,
    severity: Severity,
    *metrics: str,
    says: str,
    means: str,
    advise: Advise,
    threshold: float,
    every_row: bool = False,
) -> Callable[[Check], Rule]:
    """Make a rule of the function below."""
    return lambda check: Rule(name, severity, metrics, says, means, advise, threshold, check, every_row)


@dataclass
class Alert:
    """A rule that held, in one row or in many."""

    id: str
    severity: Severity
    message: str
    """What is wrong, with the numbers of the row in which it held last."""
    means: str
    advice: tuple[str, ...]
    metrics: tuple[str, ...]
    count: int
    first_step: int
    """Env steps of the first row in which it held."""
    last_step: int
    numbers: Numbers = field(default_factory=dict)

    def rewind(self, run: str = "@last") -> str:
        """The command that repeats the update where it began."""
        return shlex.join(["gymnast", "rewind", run, "--to", str(self.first_step)])

    def as_json(self, run: str = "@last") -> dict[str, Any]:
        """For files and programs."""
        return {**asdict(self), "rewind": self.rewind(run)}


def sentence(of: Rule, numbers: Mapping[str, float]) -> str:
    """What a rule says about these numbers."""
    return of.says.format_map(dict(numbers))
