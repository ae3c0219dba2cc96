"""The whole page about one run: verdict, evidence, causes, next experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gymnast.config.load import Resolved
from gymnast.metrics.alerts.alert import Alert
from gymnast.metrics.alerts.watch import Watch
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.diagnosis.evidence import Case
from gymnast.metrics.diagnosis.experiment import Experiment, next_experiment
from gymnast.metrics.diagnosis.rank import Ranked, rank
from gymnast.metrics.history import History
from gymnast.metrics.verdict import shown

Health = Literal["solved", "learning", "stuck", "broken", "unknown"]
CHARTS = (
    "rollout/return_mean", "eval/return_mean", "train/entropy", "train/action_std", "train/approx_kl",
    "train/clip_fraction", "train/explained_variance", "train/value_loss", "train/grad_norm",
)  # fmt: skip
"""What the page draws."""
WIDTH = 28
"""Points of a chart: with names and numbers it fits into 80 columns."""
_BARELY, _MOVED = 0.1, 0.25
"""Shares of the way from random play to solved: below the first nothing was learnt, above the second something was."""


@dataclass(frozen=True)
class Chart:
    """One metric over the whole run, as few numbers."""

    metric: str
    points: list[float]
    first: float
    last: float


@dataclass(frozen=True)
class Diagnosis:
    """What is known about a run, and what to do."""

    run: str
    health: Health
    verdict: str
    score: float | None
    """Random play is 0, solved is 1."""
    alerts: list[Alert]
    """Sorted by id."""
    causes: list[Ranked]
    experiment: Experiment | None
    charts: list[Chart]
    reference: str
    """What commands call the run: its id, or its folder where they would not find it by its id."""

    def as_json(self) -> dict[str, Any]:
        """For programs and language models."""
        causes = [
            {
                "id": one.cause.id,
                "title": one.cause.title,
                "why": one.cause.why,
                "confidence": one.confidence,
                "evidence": [asdict(evidence) for evidence in one.evidence],
                "changes": one.changes,
            }
            for one in self.causes
        ]
        return {
            "run": self.run,
            "health": self.health,
            "verdict": self.verdict,
            "score": self.score,
            "alerts": [alert.as_json(self.reference) for alert in self.alerts],
            "causes": causes,
            "experiment": None if self.experiment is None else asdict(self.experiment),
            "charts": [asdict(chart) for chart in self.charts],
        }


def diagnose(
    run: str,
    config: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    *,
    best: float | None = None,
    actions: Sequence[int] = (),
    tried: Sequence[Mapping[str, Any]] = (),
    saved: Resolved | None = None,
    failure: str | None = None,
    reference: str | None = None,
) -> Diagnosis:
    """Explain a run by its saved config and its rows.

    `best` is the best evaluation, for the verdict. `actions` are the sizes of a discrete action's parts. `tried` are configs of
    other runs of this env, which are not suggested again. `saved` is the config where it may be used, for a shorter command.
    `failure` is the error that ended the run, if one did. `reference` is what commands call the run, where that is not its id.
    """
    watch, history = Watch(config, actions=actions), History()
    ends: dict[str, list[float]] = {}
    for row in rows:
        watch.observe(row)
        values = {name: row.get(name) for name in CHARTS}
        history.append(values)
        for name, value in values.items():
            if value is not None:
                ends.setdefault(name, [value, value])[1] = value
    case = Case(watch, failure)
    health, verdict = _verdict(case, best)
    if health == "solved" or (watch.now.rows == 0 and failure is None):
        ranked = []
    else:
        ranked = rank(case)
    experiment = None
    if ranked:
        experiment = next_experiment(reference or run, config, ranked, tried, saved)
    charts = [Chart(name, history.trend(name, WIDTH), *ends[name]) for name in load_catalogue().order(ends)]
    return Diagnosis(run, health, verdict, case.score, watch.alerts, ranked, experiment, charts, reference or run)


def _verdict(case: Case, best: float | None) -> tuple[Health, str]:
    """How the run stands, in one word and one sentence."""
    now, facts, score = case.watch.now, case.facts, case.score
    course = case.watch.courses.get("rollout/return_mean")
    evaluated = best if best is not None else case.last("eval/return_mean")
    if case.failure is not None:
        return "broken", f"Training broke down after {now.step:,} env steps. {case.failure}"
    if now.rows == 0:
        return "unknown", "Nothing has been logged yet."
    if "not_finite" in case.alerts:
        return "broken", case.alerts["not_finite"].message
    if case.last("train/solved") == 1 and evaluated is not None and facts.solved_at is not None:
        return "solved", f"Solved: {shown(evaluated, facts.solved_at)} where {facts.solved_at:g} is asked for."
    if course is None:
        return "unknown", "No training episode has ended yet: so there is no return yet."
    if score is None or facts.solved_at is None:
        return _without_threshold(case)
    of = f"{_standing(case, best)}; random play has {facts.random_score:g}, and {facts.solved_at:g} is solved"
    if score < _BARELY and "policy_frozen" in case.alerts:
        return "broken", f"The policy never moved: {of}."
    if score < _BARELY:
        return "stuck", f"No better than random play: {of}."
    if "return_plateau" in case.alerts or "return_fell" in case.alerts:
        return "stuck", f"It stopped improving {score:.0%} of the way: {of}."
    if score > _MOVED:
        return "learning", f"It learns, and is {score:.0%} of the way: {of}."
    return "stuck", f"It hardly learns: {of}."


def _standing(case: Case, best: float | None) -> str:
    """The latest score, and the best one where that is another."""
    latest = next(
        value
        for value in map(case.last, ("eval/exact_return", "eval/return_mean", "rollout/return_mean"))
        if value is not None
    )
    threshold = case.facts.solved_at
    if best is None or shown(best, threshold) == shown(latest, threshold):
        return shown(latest, threshold)
    return f"{shown(latest, threshold)} now and {shown(best, threshold)} at best"


def _without_threshold(case: Case) -> tuple[Health, str]:
    """An env without known scores: only the run's own course can tell."""
    course = case.watch.courses["rollout/return_mean"]
    text = f"the training return went from {course.first:.4g} to {course.last:.4g}, at best {course.best_high:.4g}"
    if "return_plateau" in case.alerts or "return_fell" in case.alerts or course.smooth <= course.first:
        return "stuck", f"It does not improve any more: {text}."
    return "learning", f"It improves: {text}. Without a threshold (spec.solved_at) it is unknown what is enough."
