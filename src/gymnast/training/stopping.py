"""When to evaluate, and when a run is over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gymnast.config.plan import Plan
from gymnast.config.schema import RunConfig, StopRule
from gymnast.metrics.catalogue import Catalogue


@dataclass
class EvalCadence:
    """Evaluations every so many env steps, not before the warm-up and not before training looks good enough."""

    every: int
    warmup: int
    start_at: float | None
    started: bool = False
    next_at: int = 0

    def due(self, env_steps: int, return_mean: float | None) -> bool:
        """Whether to evaluate now; the first time right when the condition is met, then `every` steps after the last."""
        if not self.started:
            good = self.start_at is None or (return_mean is not None and return_mean >= self.start_at)
            if env_steps < max(self.warmup, 0 if self.start_at is not None else self.every) or not good:
                return False
            self.started = True
        elif env_steps < self.next_at:
            return False
        self.next_at = env_steps + self.every
        return True

    def state(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"started": self.started, "next_at": self.next_at}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue."""
        self.started, self.next_at = state["started"], state["next_at"]


@dataclass
class StopRules:
    """The solved rule and the config's own rules."""

    solved: StopRule | None
    rules: list[StopRule] = field(default_factory=list)
    stop_when_solved: bool = True
    standard_errors: float = 0.0

    def is_solved(self, row: Mapping[str, float | None]) -> bool:
        """Whether this row's evaluation reaches the threshold; the exact expectation decides where there is one."""
        if self.solved is None:
            return False
        exact, mean = row.get("eval/exact_return"), row.get(self.solved.metric)
        if exact is not None or mean is None:
            return self.solved.met_by(exact)
        error = (row.get("eval/return_std") or 0.0) / math.sqrt(row.get("eval/episodes") or 1.0)
        return self.solved.met_by(mean - self.standard_errors * error)

    def reason(self, row: Mapping[str, float | None]) -> str | None:
        """Why to stop now, or None."""
        if self.stop_when_solved and self.is_solved(row):
            return f"solved ({self.solved})"
        met = next((rule for rule in self.rules if rule.met_by(row.get(rule.metric))), None)
        return f"stop rule met ({met})" if met else None


def make_rules(config: RunConfig, catalogue: Catalogue) -> StopRules:
    """Check metric names now: a typo must not cost a night of training."""
    rules = [_in_our_names(rule, catalogue) for rule in config.train.stop]
    threshold = config.spec.solved_at
    # A hair of tolerance: -13 computed as -13.000000000000002 is solved.
    solved = (
        None
        if threshold is None
        else StopRule(metric="eval/return_mean", at_least=threshold - 1e-9 * max(1.0, abs(threshold)))
    )
    return StopRules(solved, rules, config.train.stop_when_solved, config.eval.standard_errors)


def _in_our_names(rule: StopRule, catalogue: Catalogue) -> StopRule:
    """The same rule on our metric: a peer's value is a factor × ours, and a negative one turns the bound around."""
    name, factor = catalogue.resolve_name(rule.metric), catalogue.alias_factor(rule.metric)
    low, high = (None if bound is None else bound / factor for bound in (rule.at_least, rule.at_most))
    if factor < 0:
        low, high = high, low
    return StopRule(metric=name, at_least=low, at_most=high)


def make_cadence(config: RunConfig, plan: Plan) -> EvalCadence:
    """From the eval section."""
    return EvalCadence(plan.eval_every, config.eval.warmup, plan.eval_start_at)
