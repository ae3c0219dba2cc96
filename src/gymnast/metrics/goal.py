"""What a run is measured against: scores known of its env, and what the table can know before the first step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gymnast.config.schedule import Constant
from gymnast.metrics.catalogue import Catalogue

if TYPE_CHECKING:
    from gymnast.config.schema import RunConfig


@dataclass(frozen=True)
class Goal:
    """Scores known of an env; what is not known is None."""

    random: float | None = None
    """Mean return of uniformly random actions."""
    target: float | None = None
    """Mean return at which the env counts as solved."""
    perfect: float | None = None
    """Of the best policy there is."""
    horizon: int | None = None
    """Most steps of an episode."""
    ends_when_solved: bool = True

    @property
    def way(self) -> float | None:
        """From a random policy's score to the target; None if that is not known, or leads down."""
        if self.random is None or self.target is None or self.target <= self.random:
            return None
        return self.target - self.random


@dataclass(frozen=True)
class Subject:
    """What the live table knows of a run before its first row."""

    goal: Goal = Goal()
    rows: tuple[str, ...] = ()
    """Metrics that have a row from the first second."""
    settings: Mapping[str, float] = field(default_factory=dict)
    """Hyperparameters that stay as they are, by metric."""


def subject_of(config: RunConfig, catalogue: Catalogue) -> Subject:
    """What a config says about its run."""
    spec, algo = config.spec, dict(config.algo)
    goal = Goal(
        random=None if spec.random_score is None else spec.random_score.score,
        target=spec.solved_at,
        perfect=None if spec.optimal_score is None else spec.optimal_score.score,
        horizon=config.env.time_limit or spec.horizon,
        ends_when_solved=config.train.stop_when_solved,
    )
    if config.plan is not None:  # scores of the env section are of no single task
        goal = Goal(ends_when_solved=config.train.stop_when_solved)
    settings: dict[str, float] = {}
    rows = []
    for metric in catalogue:
        if metric.row == "setting":
            value = algo.get(metric.label)
            constant = value.value if isinstance(value, Constant) else value
            if isinstance(constant, (int, float)):
                settings[metric.name] = float(constant)
            elif constant is not None:
                rows.append(metric.name)  # a schedule moves it
        elif metric.row == "always" or (metric.row.startswith("if ") and _has(config, metric.row[3:])):
            rows.append(metric.name)
    return Subject(goal, tuple(rows), settings)


def _has(config: RunConfig, key: str) -> bool:
    """Whether a config has something under `algo.vf_coef`; without a learned baseline REINFORCE has no critic."""
    if key == "algo.vf_coef" and getattr(config.algo, "baseline", "learned") != "learned":
        return False
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part, None)
    return value is not None and value != []
