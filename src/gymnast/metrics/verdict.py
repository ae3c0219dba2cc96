"""Whether an evaluation solves its env, and how that is said: what is printed is true as printed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

MOST_DIGITS = 17
"""Tell any two floats apart."""


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is at least the threshold, by a hair: −13 computed as −13.000000000000002 is −13."""
    return score >= threshold - 1e-9 * max(1.0, abs(threshold))


def shown(score: float, threshold: float | None = None, *, digits: int = 3) -> str:
    """A score in few digits, and in as many more as keep it on its side of the threshold: 17.99 of 18 is not "18"."""
    if not math.isfinite(score):
        return str(score)
    whole = abs(score) >= 10.0 ** (digits - 1) or score == round(score)
    text = f"{score:.1f}" if whole else f"{score:.{digits}g}"
    if threshold is None:
        return text
    while reaches(float(text), threshold) != reaches(score, threshold) and digits < MOST_DIGITS:
        digits += 1
        text = f"{score:.{digits}g}"
    return text


def spread(std: float, mean: float) -> str:
    """A standard deviation next to its mean; one that is nothing but rounding error of the mean is "0.0"."""
    if std <= 1e-12 * abs(mean):
        return shown(0.0)
    return shown(std)


@dataclass(frozen=True)
class Verdict:
    """One evaluation next to the threshold of its env."""

    score: float
    """The exact expected return if there is one, else the mean over episodes."""
    threshold: float
    exact: bool = False
    error: float = 0.0
    """Standard error of the mean; infinite after one episode, which says nothing about how much returns vary."""
    margin: float = 0.0
    """How many standard errors above the threshold the mean must lie."""
    env_steps: int | None = None
    """Of the weights that were evaluated; None outside a training."""
    task: str = ""
    """Of a plan with several tasks: the one that decides. All are solved, or this is the first that is not."""

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Verdict:
        """Out of a checkpoint, which may hold anything."""
        numbers = {name: float(saved[name]) for name in ("score", "threshold", "error", "margin")}
        env_steps = None
        if saved["env_steps"] is not None:
            env_steps = int(saved["env_steps"])
        return cls(**numbers, exact=bool(saved["exact"]), env_steps=env_steps, task=str(saved.get("task", "")))

    @property
    def allowance(self) -> float:
        """How far above the threshold the score must lie."""
        if self.exact or self.margin == 0:
            return 0.0
        return self.margin * self.error

    @property
    def solved(self) -> bool:
        """Whether the env counts as solved."""
        return reaches(self.score, self.threshold + self.allowance)

    def sentence(self) -> str:
        """`solved: 490.2 ≥ 475 + 4.2 (2 standard errors), evaluated at 34,304 env steps`, or how much is missing."""
        at = ""
        if self.env_steps is not None:
            at = f", evaluated at {self.env_steps:,} env steps"
        return f"{self._comparison()}{at}"

    def _comparison(self) -> str:
        kind = "exact expectation " if self.exact else ""
        word = "solved" if self.solved else "not solved"
        if self.task:
            word = f"all tasks solved, {self.task}" if self.solved else f"not solved: {self.task}"
        if reaches(self.score, self.threshold) and self.allowance:
            return f"{word}: {self._with_margin()}"
        score = kind + shown(self.score, self.threshold)
        if self.solved:
            return f"{word}: {score} ≥ {self.threshold:.10g}"
        if self.threshold > 0:
            return f"{word}: {score} of {self.threshold:.10g}"
        return f"{word}: {score} is below {self.threshold:.10g}"

    def _with_margin(self) -> str:
        if not math.isfinite(self.allowance):
            return f"{shown(self.score, self.threshold)} in one episode, which has no standard error (eval.episodes)"
        digits, sign = 2, "≥" if self.solved else "<"
        allowance = f"{self.allowance:.{digits}g}"
        while reaches(self.score, self.threshold + float(allowance)) != self.solved and digits < MOST_DIGITS:
            digits += 1
            allowance = f"{self.allowance:.{digits}g}"
        score = shown(self.score, self.threshold + float(allowance))
        return f"{score} {sign} {self.threshold:.10g} + {allowance} ({self.margin:g} standard errors)"

    def as_json(self) -> dict[str, Any]:
        """For `--json`: the numbers that decide, whether they do, and the sentence."""
        numbers = {key: value if math.isfinite(value or 0.0) else None for key, value in asdict(self).items()}
        return {**numbers, "solved": self.solved, "sentence": self.sentence()}


def threshold_of(config: Mapping[str, Any]) -> float | None:
    """The score from which the env of a saved config counts as solved; a damaged config has none."""
    plan = config.get("plan")
    if isinstance(plan, Mapping) and plan.get("by") != "stage":
        return None  # every task has its own
    spec = config.get("spec")
    threshold = None
    if isinstance(spec, Mapping):
        threshold = spec.get("solved_at")
    if isinstance(plan, Mapping):
        threshold = _of_last_stage(plan, threshold)
    if isinstance(threshold, (int, float)):
        return float(threshold)
    return None


def _of_last_stage(plan: Mapping[str, Any], of_the_spec: Any) -> Any:
    """The threshold of a saved plan's last stage."""
    tasks = plan.get("tasks")
    last = list(tasks.values())[-1] if isinstance(tasks, Mapping) and tasks else None
    if not isinstance(last, Mapping):
        return None
    own, env = last.get("solved_at"), last.get("env")
    if own is not None:
        return own
    other_env = isinstance(env, Mapping) and "id" in env
    return None if other_env else of_the_spec


def verdict_of(
    metrics: Mapping[str, float | None],
    threshold: float | None,
    standard_errors: float,
    env_steps: int | None = None,
) -> Verdict | None:
    """The verdict on an evaluation's metrics; None without an evaluation or a threshold.

    An exact expectation decides if there is one. A mean must lie `standard_errors` above the threshold.
    """
    if threshold is None:
        return None
    exact, mean = metrics.get("eval/exact_return"), metrics.get("eval/return_mean")
    if exact is not None:
        return Verdict(exact, threshold, exact=True, env_steps=env_steps)
    if mean is None:
        return None
    error = standard_error(metrics.get("eval/return_std"), metrics.get("eval/episodes"))
    return Verdict(mean, threshold, error=error, margin=standard_errors, env_steps=env_steps)


def verdict_of_tasks(
    metrics: Mapping[str, float | None],
    thresholds: Mapping[str, float | None],
    standard_errors: float,
    env_steps: int | None = None,
) -> Verdict | None:
    """The verdict on an evaluation of all tasks of a plan: solved when every task with a threshold is.

    The first one that is not decides.
    """
    found = None
    for task, threshold in thresholds.items():
        prefix = f"eval.{task}/"
        own = {f"eval/{name.removeprefix(prefix)}": value for name, value in metrics.items() if name.startswith(prefix)}
        verdict = verdict_of(own, threshold, standard_errors, env_steps)
        if verdict is None:
            continue
        found = replace(verdict, task=task)
        if not found.solved:
            return found
    return found


def standard_error(std: float | None, episodes: float | None) -> float:
    """Of the mean of so many returns, from their population standard deviation."""
    if std is None or episodes is None:
        return 0.0
    # n − 1: the population's deviation of n returns is that of their mean, not of the one they were drawn around.
    if episodes > 1:
        return std / math.sqrt(episodes - 1)
    return math.inf
