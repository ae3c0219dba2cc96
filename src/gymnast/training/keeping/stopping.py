"""When a run is over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gymnast.config.schema import RunConfig, StopRule
from gymnast.config.tasks import task_thresholds
from gymnast.evaluation.evaluate import SHARED_METRICS
from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.verdict import Verdict, verdict_of, verdict_of_tasks

SOLVED = "solved"
"""Why a run ends whose env is solved; the verdict says by how much."""


@dataclass
class StopRules:
    """The solved rule and the config's own rules."""

    threshold: float | None
    """The score from which the env counts as solved."""
    rules: list[StopRule] = field(default_factory=list)
    stop_when_solved: bool = True
    standard_errors: float = 0.0
    """How far above the threshold a mean over episodes must lie."""
    tasks: Mapping[str, float | None] = field(default_factory=dict)
    """The thresholds of a plan's tasks that are trained on at the same time; empty without one."""

    def verdict(self, row: Mapping[str, float | None], env_steps: int | None = None) -> Verdict | None:
        """This row's evaluation next to the threshold; the exact expectation decides if there is one."""
        if self.tasks:
            return verdict_of_tasks(row, self.tasks, self.standard_errors, env_steps)
        return verdict_of(row, self.threshold, self.standard_errors, env_steps)

    def is_solved(self, row: Mapping[str, float | None]) -> bool:
        """Whether this row's evaluation solves the env."""
        verdict = self.verdict(row)
        return verdict is not None and verdict.solved

    def reason(self, row: Mapping[str, float | None]) -> str | None:
        """Why to stop now, or None."""
        if self.stop_when_solved and self.is_solved(row):
            return SOLVED
        met = next((rule for rule in self.rules if rule.met_by(row.get(rule.metric))), None)
        if met:
            return f"stop rule met ({met})"
        return None


def make_rules(config: RunConfig, catalogue: Catalogue) -> StopRules:
    """Check metric names now: a typo must not cost a night of training."""
    plan = config.plan
    names = list(plan.tasks) if plan is not None else [name for name in config.eval.env_settings if name]
    others = {metric.replace("eval/", f"eval.{name}/", 1) for name in names for metric in SHARED_METRICS}
    rules = [_in_our_names(rule, catalogue, others) for rule in config.train.stop]
    threshold, thresholds = config.spec.solved_at, task_thresholds(config)
    if plan is not None:
        threshold = thresholds[plan.stages[-1]] if plan.stages else None
    tasks = {} if plan is not None and plan.stages else thresholds
    return StopRules(threshold, rules, config.train.stop_when_solved, config.eval.standard_errors, tasks)


def _in_our_names(rule: StopRule, catalogue: Catalogue, others: Collection[str]) -> StopRule:
    """The same rule on our metric: a peer's value is a factor × ours, and a negative one turns the bound around."""
    if rule.metric in others:
        return rule
    name, factor = catalogue.resolve_name(rule.metric), catalogue.alias_factor(rule.metric)
    low, high = (None if bound is None else bound / factor for bound in (rule.at_least, rule.at_most))
    if factor < 0:
        low, high = high, low
    return StopRule(metric=name, at_least=low, at_most=high)
