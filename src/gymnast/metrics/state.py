"""How a run is doing, in one sentence: a pure function of what was logged and of what is known of the env.

A score counts as news when it beats the news before it by more than a margin: a hundredth of the way from random to
target, the standard error of the mean over the last episodes, or how much the course jitters, whichever is most. A run
without news for a tenth of its budget is stalled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from gymnast.metrics.goal import Goal
from gymnast.metrics.history import History, Point
from gymnast.metrics.verdict import reaches, shown

TRAINING = "rollout/return_mean"
EVALUATED = ("eval/exact_return", "eval/return_mean")
"""Scores of evaluations; an exact expectation goes before a mean over episodes."""

FEWEST_POINTS = 4
"""Of a course that is long enough to speak of a trend."""
PATIENCE = 0.1
"""Share of the budget after which a run without news is stalled."""
NEWS = 0.01
"""Share of the way to the target that is worth mentioning."""
RANDOM = 0.05
"""Share of the way below which a score is that of a random policy."""
FALL = 0.25
"""Share of what was gained whose loss is a fall."""
WINDOW = 100
"""Most episodes in the training mean; fewer make its standard error larger, so this never claims too much."""

Kind = Literal[
    "starting", "waiting", "early", "learning", "stalled", "random", "falling", "confirming", "solved", "broken"
]
Tone = Literal["plain", "good", "warning", "bad"]


class State(NamedTuple):
    """What a run is doing now."""

    kind: Kind
    sentence: str
    tone: Tone


def state_of(history: History, goal: Goal) -> State:
    """The first of these that holds: broken, solved, confirming, no score yet, too early, or how the score moves."""
    if not history.rows:
        return State("starting", "starting: the first steps are being collected", "plain")
    broken = _broken(history)
    if broken is not None:
        return State("broken", f"broken: {broken} is not a finite number", "bad")
    at_target = _at_target(history, goal)
    if at_target is not None:
        return at_target
    course = score_course(history)
    if not course and training_score(history) is None:
        return State("waiting", _waiting(history, goal), "plain")
    if len(course) < FEWEST_POINTS:
        episodes = history.last("rollout/episodes") or 0
        return State("early", f"getting started: {_episodes(episodes)} so far, too few to see a trend", "plain")
    return _moving(history, goal, course)


def training_score(history: History) -> float | None:
    """Mean return of the last training episodes."""
    return history.last(TRAINING)


def evaluated_score(history: History) -> float | None:
    """Of the latest evaluation."""
    return next((history.last(name) for name in EVALUATED if history.last(name) is not None), None)


def best_score(history: History) -> Point | None:
    """The best evaluation; before the first one, the best mean of training episodes."""
    bests = (history.high(name) for name in (*EVALUATED, TRAINING))
    return next((best for best in bests if best is not None), None)


def score_course(history: History) -> list[Point]:
    """The score over the run: of training where episodes end, else of evaluations."""
    return history.course(TRAINING) or next((history.course(name) for name in EVALUATED if history.course(name)), [])


def budget_of(history: History) -> float | None:
    """The whole run in vec steps."""
    progress = history.last("progress")
    if progress:
        return history.vec_steps / progress
    return None


def steps_in_words(history: History, vec_steps: float) -> str:
    """`1.2k vec_steps (40k env_steps)`."""
    done, env_steps = history.vec_steps, history.last("env_steps")
    text = f"{short(vec_steps)} vec_steps"
    if not done or env_steps is None:
        return text
    return f"{text} ({short(vec_steps * env_steps / done)} env_steps)"


def short(number: float) -> str:
    """`40k`, `1.2M`: a count in at most two and a half digits."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * size:
            scaled = number / size
            if scaled < 10:
                return f"{scaled:.1f}".removesuffix(".0") + letter
            return f"{scaled:.0f}{letter}"
    return f"{number:.0f}"


def _broken(history: History) -> str | None:
    for name in ("train/loss", "train/policy_loss", TRAINING):
        value = history.last(name)
        if value is not None and not math.isfinite(value):
            return name
    return None


def _at_target(history: History, goal: Goal) -> State | None:
    """Solved, or reached by training or by an evaluation that does not decide yet."""
    target, evaluated, training = goal.target, evaluated_score(history), training_score(history)
    if target is None:
        return None
    if history.last("train/solved") == 1:
        best = best_score(history)
        found = ""
        if best is not None:
            found = f": evaluated at {shown(best.value, target)}, the target is {target:g}"
        rest = "" if goal.ends_when_solved else "; training goes on"
        return State("solved", f"solved{found}{rest}", "good")
    if evaluated is not None and reaches(evaluated, target):
        why = f"evaluated at {shown(evaluated, target)} of {target:g}, still within the margin of error"
        return State("confirming", f"solved, confirming: {why}", "good")
    if training is not None and reaches(training, target):
        why = f"training reached {shown(training, target)} of {target:g}, an evaluation decides"
        return State("confirming", f"solved, confirming: {why}", "good")
    return None


def _waiting(history: History, goal: Goal) -> str:
    text = "waiting for the first episode to end"
    horizon, steps = goal.horizon, history.vec_steps
    if horizon and steps <= horizon:
        return f"{text}: step {steps:,.0f} of at most {horizon:,}"
    return text


def _moving(history: History, goal: Goal, course: Sequence[Point]) -> State:
    """What the course of the score says."""
    margin = _margin(history, goal, course)
    best = _last_news(course, margin)
    now, idle = course[-1].value, history.vec_steps - best.vec_steps
    score = training_score(history)
    if score is None:
        score = now
    gained, lost = best.value - course[0].value, best.value - now
    highest = max(point.value for point in course)
    if lost > max(FALL * gained, 3 * margin) and gained > margin:
        return State("falling", f"falling: the training score is {shown(score)}, after {shown(highest)}", "bad")
    patient = idle <= _patience(history)
    # Some lucky episodes, and back to what random actions get: that is not learning, however new they are.
    back = goal.random is not None and now <= goal.random and now < highest - margin
    if patient and not back:
        return _learning(history, course, best, margin)
    if _near_random(goal, best.value, margin):
        done = steps_in_words(history, history.vec_steps)
        return State("random", f"no better than random so far: {shown(score)} after {done}", "warning")
    return State("stalled", f"stalled for {steps_in_words(history, idle)}: the best was {shown(highest)}", "warning")


def _near_random(goal: Goal, score: float, margin: float) -> bool:
    """Whether a score is what random actions get, or hardly more."""
    if goal.random is None or goal.way is None:
        return False
    return score - goal.random < max(RANDOM * goal.way, margin)


def _learning(history: History, course: Sequence[Point], best: Point, margin: float) -> State:
    span = min(_patience(history), history.vec_steps - course[0].vec_steps)
    begin = history.vec_steps - span
    earlier = [point for point in course if point.vec_steps <= begin] or [course[0]]
    gain = course[-1].value - earlier[-1].value
    if gain > margin:
        past = steps_in_words(history, history.vec_steps - earlier[-1].vec_steps)
        return State("learning", f"learning: the score rose by {shown(gain)} in the last {past}", "good")
    idle = history.vec_steps - best.vec_steps
    if idle <= 0:
        return State("learning", f"learning: {shown(best.value)} is the best score so far", "good")
    return State("learning", f"learning: best score {shown(best.value)}, {steps_in_words(history, idle)} ago", "plain")


def _margin(history: History, goal: Goal, course: Sequence[Point]) -> float:
    """By how much a score must beat another to be better."""
    values = [point.value for point in course]
    scale = goal.way or max(values) - min(values)
    std, episodes = history.last("rollout/return_std") or 0.0, history.last("rollout/episodes") or 1.0
    error = std / math.sqrt(min(max(episodes, 1.0), WINDOW))
    return max(NEWS * scale, error if math.isfinite(error) else 0.0, _jitter(values))


def _jitter(values: Sequence[float]) -> float:
    """Standard deviation around a course, from second differences: a steady climb has none."""
    bends = sorted(abs(first - 2 * second + third) for first, second, third in zip(values, values[1:], values[2:]))
    if not bends:
        return 0.0
    # A median forgives single jumps. Normal noise has a standard deviation of 1.48 such medians, and its second
    # differences one of √6 times its own.
    return 1.48 * bends[len(bends) // 2] / math.sqrt(6)


def _last_news(course: Sequence[Point], margin: float) -> Point:
    """The latest point that beat the news before it by more than the margin."""
    best = course[0]
    for point in course[1:]:
        if point.value > best.value + margin:
            best = point
    return best


def _patience(history: History) -> float:
    budget = budget_of(history)
    if budget is not None:
        return PATIENCE * budget
    return history.vec_steps / 4


def _episodes(count: float) -> str:
    if count == 1:
        return "1 episode"
    return f"{count:,.0f} episodes"
