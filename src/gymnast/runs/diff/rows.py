"""Two metrics files row by row: the first iteration that differs, in the order of cause and effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.sinks.jsonl import NOT_METRICS, STEP
from gymnast.runs.diff.keys import KeyChange

Rows = list[dict[str, Any]]
STAGES = ("counters", "data", "settings", "targets", "update", "evaluation", "other")
"""What happens in an iteration, in the order of cause and effect."""
TARGETS = (
    "train/value_mean", "train/return_target_mean", "train/advantage_mean", "train/advantage_std",
    "train/reward_scale", "train/explained_variance",
)  # fmt: skip
"""Computed from the rollout before the first update."""
SETTINGS = frozenset(
    f"train/{key}"
    for key in (
        "learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef", "gamma", "gae_lambda", "max_grad_norm",
        "target_kl", "n_epochs",
    )
)  # fmt: skip
"""Scheduled coefficients, logged as they were used."""
WINDOWED = ("rollout/return_", "rollout/length_", "rollout/success_rate", "rollout/regret")
"""Over the last `log.window` episodes."""
TIMES = ("time/", "sys/")


@dataclass(frozen=True)
class MetricChange:
    """A metric of the first iteration that differs."""

    name: str
    stage: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Parting:
    """The first iteration that differs."""

    iteration: int
    env_steps: int
    last_equal: int | None
    metrics: list[MetricChange]
    """In the order of cause and effect."""


class Ignored:
    """What is not compared, because it is a time or because a setting is meant to change it."""

    def __init__(self, keys: list[KeyChange], configs: list[dict[str, Any]]) -> None:
        changed = [change.key for change in keys]
        budget = any(key in ("train.env_steps", "train.vec_steps") for key in changed)
        by_budget = budget and any((config.get("eval") or {}).get("every") is None for config in configs)
        spec = any(key.startswith("spec.") for key in changed)
        self.evaluation = by_budget or spec or any(key.startswith("eval.") for key in changed)
        self.window = "log.window" in changed
        self.notes: list[str] = []
        if self.evaluation:
            self.notes.append("evaluations are not compared: their settings or their cadence differ")
        if self.window:
            self.notes.append("running means of episodes are not compared: log.window differs")

    def metric(self, name: str) -> bool:
        """Whether a metric is left out; the share of the budget says nothing about training."""
        if name.startswith(TIMES) or name in NOT_METRICS or name == "progress":
            return True
        if self.evaluation and _is_evaluation(name):
            return True
        return self.window and name.startswith(WINDOWED)

    def state(self, name: str, *, evaluation: bool) -> bool:
        """Whether an entry of a checkpoint is left out; `evaluation` leaves out what it remembers of evaluations."""
        if name in ("counters/seconds", "state/loop/next_save"):
            return True
        if (self.evaluation or evaluation) and (name == "counters/evaluations" or name.startswith("state/loop/")):
            return True
        return self.window and name.startswith("state/session/window/")


def _is_evaluation(name: str) -> bool:
    return name.startswith("eval/") or name == "train/solved"


def compare_rows(first: Rows, second: Rows, ignored: Ignored) -> tuple[Parting | None, Parting | None, int, list[str]]:
    """Where training and, if that is equal, evaluations part; how many iterations are equal; what is on one side only."""
    by_number = [{_number(row): row for row in rows} for rows in (first, second)]
    numbers = sorted(by_number[0].keys() & by_number[1].keys())
    if not numbers:
        return None, None, 0, []
    names = [[name for name in rows[0] if not ignored.metric(name)] for rows in (first, second)]
    notes = []
    for label, mine, other in (("A", *names), ("B", *names[::-1])):
        if only := [name for name in mine if name not in other]:
            notes.append(f"metrics only in {label}: {', '.join(only)}")
    pairs = [(by_number[0][number], by_number[1][number]) for number in numbers]
    common = [name for name in names[0] if name in names[1]]
    parting, equal = _first_apart(pairs, [name for name in common if not _is_evaluation(name)])
    if parting is not None:
        return parting, None, equal, notes
    judged = [name for name in common if _is_evaluation(name)]
    if first[-1][STEP] != second[-1][STEP]:
        pairs = pairs[:-1]  # a run that ends is evaluated once more, one that goes on is not
    return None, _first_apart(pairs, judged)[0], equal, notes


def _first_apart(pairs: list[tuple[dict[str, Any], dict[str, Any]]], names: list[str]) -> tuple[Parting | None, int]:
    """The first pair of rows that differs in `names`, and how many are equal before it."""
    last: int | None = None
    for i, (a, b) in enumerate(pairs):
        apart = [name for name in names if _value(a, name) != _value(b, name)]
        number = _number(a)
        if apart:
            order = load_catalogue().order(apart)
            changes = [MetricChange(name, stage_of(name), _told(a, name), _told(b, name)) for name in order]
            changes.sort(key=lambda change: STAGES.index(change.stage))
            return Parting(number, int(a[STEP]), last, changes), i
        last = number
    return None, len(pairs)


def _number(row: dict[str, Any]) -> int:
    return int(row.get("iteration") or row[STEP])


def _value(row: dict[str, Any], name: str) -> str:
    """As text, so that −0 is not 0 and 1 is not 1.0."""
    return repr(_told(row, name))


def _told(row: dict[str, Any], name: str) -> Any:
    return "not finite" if name in row.get("nonfinite", ()) else row.get(name)


def stage_of(name: str) -> str:
    """Where in an iteration a metric arises. Coefficients of the loss are settings: they do not depend on the data."""
    space = name.partition("/")[0]
    if name == space:
        return "update" if name in ("updates", "epoch") else "counters"
    if space in ("rollout", "env"):
        return "data"
    if _is_evaluation(name):
        return "evaluation"
    if name in TARGETS:
        return "targets"
    if space == "train":
        return "settings" if name in SETTINGS else "update"
    return "other"
