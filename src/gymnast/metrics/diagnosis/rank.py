"""Weighs the evidence: which causes explain a run best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gymnast.metrics.diagnosis.causes import CAUSES, Cause, changes_for, evidence_for
from gymnast.metrics.diagnosis.evidence import Case, Evidence

SOMETHING_ELSE = 1.0
"""Weight of a cause that is not in the list, bad luck among them: what the listed ones must exceed to be believed."""
LEAST = 0.5
"""Causes with less evidence are not named."""


@dataclass(frozen=True)
class Ranked:
    """A cause with what speaks for it."""

    cause: Cause
    weight: float
    confidence: float
    """Share of the belief: all causes and "something else" add up to 1."""
    evidence: tuple[Evidence, ...]
    changes: dict[str, Any]
    """Dotted keys and the values to try."""


def rank(case: Case) -> list[Ranked]:
    """The causes with enough evidence, the likeliest first."""
    weighed = []
    for cause in CAUSES:
        evidence = evidence_for(cause, case)
        weight = math.fsum(one.weight for one in evidence)
        changes = changes_for(cause, case)
        if weight >= LEAST and changes:
            weighed.append((weight, cause, evidence, changes))
    total = math.exp(SOMETHING_ELSE) + math.fsum(math.exp(weight) for weight, *_ in weighed)
    ranked = [
        Ranked(cause, weight, math.exp(weight) / total, tuple(evidence), changes)
        for weight, cause, evidence, changes in weighed
    ]
    return sorted(ranked, key=lambda one: (-one.weight, one.cause.id))
