"""How good a run was in one number (MET-5): what its policy was worth over the budget, by evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Judged(NamedTuple):
    """One evaluation."""

    vec_steps: int
    """Of the weights that were evaluated."""
    score: float
    """The exact expected return if there is one, else the mean over episodes."""
    solved: bool = False
    """Whether it solved the env."""


def efficiency(found: Iterable[Judged], budget: int, random: float | None, threshold: float | None) -> float | None:
    """Mean evaluated return over the budget in vec steps, on a scale where random play is 0 and the threshold is 1.

    The curve begins at random play, goes straight from one evaluation to the next, and stays at the last one to the end of
    the budget, because a run that is solved early stops there. None without evaluations, or where the scale is not known.
    """
    points = sorted((one.vec_steps, one.score) for one in found)
    if not points or random is None or threshold is None or threshold <= random or budget <= 0:
        return None
    area, at, height = 0.0, 0, random
    for vec_steps, score in points:
        end = min(vec_steps, budget)
        if vec_steps > at:
            there = height + (score - height) * (end - at) / (vec_steps - at)
            area += (end - at) * (height + there) / 2
        at, height = vec_steps, score
        if vec_steps >= budget:
            break
    area += max(budget - at, 0) * height
    return (area / budget - random) / (threshold - random)


def first_solved(found: Iterable[Judged]) -> Judged | None:
    """The evaluation that solved the env."""
    return next((one for one in sorted(found) if one.solved), None)


def restored(saved: Any) -> list[Judged]:
    """Out of a checkpoint."""
    return [Judged(int(one[0]), float(one[1]), bool(one[2])) for one in saved or []]


def judged_in(rows: Iterable[Mapping[str, Any]]) -> list[Judged]:
    """From a run's metrics, for runs of versions that did not keep the list."""
    found = []
    for row in rows:
        exact, mean = row.get("eval/exact_return"), row.get("eval/return_mean")
        score = mean if exact is None else exact
        if score is not None:
            solved = row.get("train/solved") == 1
            found.append(Judged(int(row["vec_steps"]), float(score), solved))
    return found
