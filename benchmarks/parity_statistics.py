"""How `envpool_parity.py` decides whether two envs are the same: p values of samples against a model, or against each other.

A `Check` is one p value. A row makes hundreds of them, so each is held against the row's level divided by their number
(Bonferroni): an env that is the same fails in one run of a thousand, however many components it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.001
"""Chance that a row fails although the envs are the same. Fixed before anything was run."""
EXPECTED = 5.0
"""Outcomes that are expected less often are counted together: the chi-square distribution is wrong for them."""
FEW_VALUES = 20
"""A component with so many different values or fewer is a category, and its frequencies are compared."""
PROJECTIONS = 8


@dataclass(frozen=True)
class Check:
    """One comparison: the probability of a difference as large as this one between equal envs."""

    what: str
    p: float


def passed(checks: Sequence[Check], total: int) -> bool:
    """Whether all of these pass in a row that makes `total` checks."""
    return all(check.p > LEVEL / total for check in checks)


# --- a sample against a model ------------------------------------------------------------------------------------------


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> tuple[float, int]:
    """Statistic and degrees of freedom of counts `[K]` against probabilities `[K]`, rare outcomes counted together."""
    expected = probabilities * counts.sum()
    rare = expected < EXPECTED
    if rare.any():
        if expected[rare].sum() < EXPECTED and not rare.all():  # too few even together: the next rarest joins them
            rare[np.where(rare, np.inf, expected).argmin()] = True
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if len(counts) < 2:
        return 0.0, 0
    return float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1


def frequencies(seen: Mapping[object, int], model: Mapping[object, float], what: str = "") -> Check:
    """Outcomes that were counted against the probabilities of a model: none that is impossible, and each as often as it says."""
    if impossible := {outcome: count for outcome, count in seen.items() if outcome not in model}:
        return Check(_impossible(impossible, sum(seen.values())), 0.0)
    outcome, p = _least_likely(seen, model)
    if p < (together := _tail(*_fit(seen, model))):
        return Check(f"{what}{seen.get(outcome, 0):,} of {sum(seen.values()):,} are {outcome}", min(1.0, 2 * p))
    return Check(f"{what}frequencies of {len(model):,} outcomes", min(1.0, 2 * together))


def many_frequencies(
    seen: Mapping[object, Mapping[object, int]], model: Mapping[object, Mapping[object, float]]
) -> list[Check]:
    """The same for every case by itself (a state and an action), and for all of them together."""
    impossible = {
        (case, outcome): count
        for case, outcomes in seen.items()
        for outcome, count in outcomes.items()
        if case in model and outcome not in model[case]
    }
    if impossible:
        return [Check(_impossible(impossible, sum(sum(outcomes.values()) for outcomes in seen.values())), 0.0)]
    if unknown := [case for case in seen if case not in model]:
        return [Check(f"{len(unknown):,} cases are never reached in Gymnasium, e.g. {unknown[0]}", 0.0)]
    fits = [_fit(outcomes, model[case]) for case, outcomes in seen.items()]
    together = _tail(sum(fit[0] for fit in fits), sum(fit[1] for fit in fits))
    checks = [frequencies(outcomes, model[case], f"after {case}: ") for case, outcomes in seen.items()]
    return [*checks, Check(f"frequencies of all {len(seen):,} cases together", together)]


def _impossible(counts: Mapping[object, int], total: int) -> str:
    example = max(counts, key=lambda outcome: counts[outcome])
    return f"{sum(counts.values()):,} of {total:,} are impossible in Gymnasium, e.g. {example}"


def _least_likely(seen: Mapping[object, int], model: Mapping[object, float]) -> tuple[object, float]:
    """The outcome whose count is the most surprising, among them those that never came, and the chance of a count like it."""
    outcomes, n = list(model), sum(seen.values())
    counts, probabilities = np.array([seen.get(outcome, 0) for outcome in outcomes]), np.array(list(model.values()))
    fewer, more = stats.binom.cdf(counts, n, probabilities), stats.binom.sf(counts - 1, n, probabilities)
    both = 2 * np.minimum(fewer, more)
    worst = int(both.argmin())
    return outcomes[worst], min(1.0, float(both[worst]) * len(outcomes))


def _fit(seen: Mapping[object, int], model: Mapping[object, float]) -> tuple[float, int]:
    counts = np.array([seen.get(outcome, 0) for outcome in model], float)
    return chi_square(counts, np.array(list(model.values())))


def _tail(statistic: float, freedom: int) -> float:
    return float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0


# --- two samples -------------------------------------------------------------------------------------------------------


def numbers(what: str, ours: np.ndarray, theirs: np.ndarray) -> list[Check]:
    """Two samples of one number: the same frequencies of few values, or the same distribution and the same range of many."""
    # Rounding differs between float32 and float64: what differs less is one value.
    a, b = (np.round(np.asarray(sample, np.float64), 5) for sample in (ours, theirs))
    values = np.unique(np.concatenate([a, b]))
    if len(values) == 1:
        return [Check(f"{what}: one value", 1.0)]
    if len(values) <= FEW_VALUES:
        return [Check(f"{what}: frequencies", proportions(_counts(a, values), _counts(b, values)))]
    return [
        Check(f"{what}: distribution", float(stats.ks_2samp(a, b, method="asymp").pvalue)),
        Check(f"{what}: below Gymnasium's range", beyond(-a, -b)),
        Check(f"{what}: above Gymnasium's range", beyond(a, b)),
        Check(f"{what}: lower end of the range not reached", beyond(-b, -a)),
        Check(f"{what}: upper end of the range not reached", beyond(b, a)),
    ]


def beyond(a: np.ndarray, b: np.ndarray) -> float:
    """Chance that so many of `b` are greater than all of `a`. Distributions of equal shape but other width differ here first."""
    k = int((b > a.max()).sum())
    places = len(b) - np.arange(k)
    return float(np.prod(places / (len(a) + places)))


def proportions(a: np.ndarray, b: np.ndarray) -> float:
    """Chi-square test of two rows of counts, rare columns counted together."""
    table = np.stack([a, b]).astype(float)
    table = table[:, table.sum(0) > 0]
    rare = table.sum(0) < 2 * EXPECTED
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(1)])
    if table.shape[1] < 2:
        return 1.0
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def _counts(sample: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(values, sample), minlength=len(values))


def vectors(what: str, ours: np.ndarray, theirs: np.ndarray, names: Sequence[str] = ()) -> list[Check]:
    """Two samples `[n, K]`, component by component, and along a few directions, where dependence between components shows."""
    checks = []
    for i in range(ours.shape[1]):
        name = names[i] if i < len(names) else f"component {i}"
        checks += numbers(f"{what}, {name}", ours[:, i], theirs[:, i])
    if ours.shape[1] > 1:
        spread = np.maximum(ours.std(0), 1e-5)
        directions = np.random.default_rng(0).normal(size=(ours.shape[1], PROJECTIONS))
        first, second = (((sample - ours.mean(0)) / spread) @ directions for sample in (ours, theirs))
        for i in range(PROJECTIONS):
            p = float(stats.ks_2samp(np.round(first[:, i], 4), np.round(second[:, i], 4), method="asymp").pvalue)
            checks.append(Check(f"{what}, direction {i}: distribution", p))
    return checks
