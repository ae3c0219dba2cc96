"""Values that cannot be: outside the catalogue's bounds, or outside what config and spaces allow."""

from __future__ import annotations

import math

from gymnast.metrics.alerts.alert import Finding, Numbers, rule
from gymnast.metrics.alerts.course import Now
from gymnast.metrics.catalogue import load_catalogue

_BOUNDS = {metric.name: metric.bounds for metric in load_catalogue() if metric.bounds is not None}
_SLACK = 1e-5
"""Relative: sums in float32 may pass a bound by rounding."""


def _report(now: Now, numbers: Numbers) -> tuple[str, ...]:
    return (
        "This is an error of the env, of a wrapper or of gymnast, not of your settings: check the env first with "
        f"gymnast env check {now.facts.get('env.id')}",
    )


def _tame(now: Now, numbers: Numbers) -> tuple[str, ...]:
    rate = now.facts.number("algo.learning_rate")
    return (
        f"algo.learning_rate: divide it by 10 (now {rate:g})." if rate else "algo.learning_rate: divide it by 10.",
        "algo.normalize_reward=true and policy.normalize_obs=true: huge rewards or observations overflow.",
        f"gymnast env check {now.facts.get('env.id')}: an env that returns NaN spoils every weight it reaches.",
    )


@rule(
    "not_finite",
    "error",
    "env_steps",
    says="{count:.0f} metrics are NaN or infinite.",
    means="A NaN spreads from one number to all weights; what is learnt afterwards is lost.",
    advise=_tame,
    threshold=0,
    every_row=True,
)
def not_finite(now: Now, threshold: float) -> Finding | None:
    """NaN or an infinity among the metrics of a row."""
    named = now.row.get("nonfinite")
    names = tuple(named) if named else ()
    if named is None:  # a row that has not gone through the file, where such values become null
        names = tuple(name for name, value in now.row.items() if isinstance(value, float) and not math.isfinite(value))
    if len(names) > threshold:
        return Finding({"count": float(len(names))}, names)
    return None


@rule(
    "hard_bound",
    "error",
    "env_steps",
    says="{value:.4g} lies outside {low:g} … {high:g}, where this metric must be.",
    means="The metric's meaning rules this value out, so something measures or computes wrongly.",
    advise=_report,
    threshold=_SLACK,
    every_row=True,
)
def hard_bound(now: Now, threshold: float) -> Finding | None:
    """A value outside the bounds that the catalogue gives its metric."""
    for name, value in now.row.items():
        bounds = _BOUNDS.get(name)
        if bounds is None or value is None:
            continue
        low, high = bounds
        slack = threshold * max(1.0, abs(value))
        if (low is not None and value < low - slack) or (high is not None and value > high + slack):
            low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
            return Finding({"value": value, "low": low, "high": high}, (name,))
    return None


@rule(
    "entropy_bound",
    "error",
    "train/entropy",
    says="The entropy is {entropy:.4g}, but {actions:.0f} choices allow at most {limit:.4g}.",
    means="No policy over these actions is more random than a uniform one, so the entropy is computed wrongly.",
    advise=_report,
    threshold=1e-3,
)
def entropy_bound(now: Now, threshold: float) -> Numbers | None:
    """Entropy of discrete actions outside 0 … the sum of log n over their parts."""
    limit = now.facts.entropy_limit
    entropy = now["train/entropy"].last
    if limit is None or -threshold <= entropy <= limit + threshold:
        return None
    return {"entropy": entropy, "limit": limit, "actions": float(math.prod(now.facts.actions))}


@rule(
    "return_bound",
    "warning",
    "rollout/return_min",
    "rollout/return_max",
    says="Episodes returned {lowest:.6g} to {highest:.6g}; the env's spec says {low:g} … {high:g}.",
    means=(
        "Either the env pays other rewards than its spec says, or the spec is wrong: thresholds and scores may mislead."
    ),
    advise=_report,
    threshold=1e-4,
)
def return_bound(now: Now, threshold: float) -> Numbers | None:
    """Returns outside the range in the env's spec, where episodes are those that the spec describes."""
    bounds = now.facts.get("spec.return_range")
    if not bounds or not now.facts.same_episodes or now.facts.wrapper("frame_skip") is not None:
        return None
    low, high = _open_ended(*bounds)
    lowest, highest = now["rollout/return_min"].last, now["rollout/return_max"].last
    slack = threshold * max(1.0, abs(lowest), abs(highest))
    if lowest >= low - slack and highest <= high + slack:
        return None
    return {"lowest": lowest, "highest": highest, "low": low, "high": high}


def _open_ended(low: float | None, high: float | None) -> tuple[float, float]:
    """A range of the spec, where None means that there is no bound on that side."""
    return -math.inf if low is None else low, math.inf if high is None else high


@rule(
    "reward_bound",
    "warning",
    "rollout/reward_mean",
    says="The mean reward per step is {mean:.6g}; the env's spec says every reward is in {low:g} … {high:g}.",
    means=(
        "Either the env pays other rewards than its spec says, or the spec is wrong: thresholds and scores may mislead."
    ),
    advise=_report,
    threshold=1e-4,
)
def reward_bound(now: Now, threshold: float) -> Numbers | None:
    """A mean reward outside the range of single rewards in the env's spec."""
    bounds = now.facts.get("spec.reward_range")
    if not bounds or now.facts.get("env.kwargs") or now.facts.wrapper("frame_skip") is not None:
        return None
    low, high = _open_ended(*bounds)
    mean = now["rollout/reward_mean"].last
    slack = threshold * max(1.0, abs(mean))
    if low - slack <= mean <= high + slack:
        return None
    return {"mean": mean, "low": low, "high": high}


RULES = (not_finite, hard_bound, entropy_bound, return_bound, reward_bound)
