"""Two metrics files row by row: the first iteration that differs, in the order of cause and effect."""

from __future__ import annotations

from collections.abc import Iterator, Reversible
from dataclasses import dataclass
from typing import Any

from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.sinks.jsonl import NOT_METRICS, STEP
from gymnast.runs.diff.keys import KeyChange

Row = dict[str, Any]
Rows = Reversible[Row]
"""Oldest first; they may come from a file that does not fit into memory."""
STAGES = ("counters", "data", "settings", "targets", "update", "evaluation", "other")
"""What happens in an iteration, in the order of cause and effect."""
TARGETS = (
    "train/reward_mean", "train/value_mean", "train/return_target_mean", "train/advantage_mean", "train/advantage_std",
    "train/reward_scale", "train/explained_variance",
)  # fmt: skip
"""Computed from the rollout before the first update."""
SETTINGS = frozenset(
    f"train/{key}"
    for key in (
        "learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef", "gamma", "gae_lambda", "max_grad_norm",
        "target_kl",
    )
)  # fmt: skip
"""Scheduled coefficients, logged as they were used."""
WINDOWED = ("rollout/return_", "rollout/length_", "rollout/success_rate", "rollout/regret")
"""Over the last `log.window` episodes."""
RESTARTS = "env/worker_restarts"
MACHINE = ("time/", "sys/", RESTARTS)
"""About the machine, not about learning; the episodes that a replaced worker lost show in the data."""


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
    restarts: tuple[int, int] = (0, 0)
    """How many env workers either run had replaced by then."""


class Ignored:
    """What is not compared, because it is about the machine or because a setting is meant to change it."""

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
        if name.startswith(MACHINE) or name in NOT_METRICS or name == "progress":
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
    names = [[name for name in next(iter(rows), {}) if not ignored.metric(name)] for rows in (first, second)]
    common = [name for name in names[0] if name in names[1]]
    training = [name for name in common if not _is_evaluation(name)]
    evaluated = [name for name in common if _is_evaluation(name)]
    equal, last = 0, None
    evaluation: Parting | None = None
    for a, b in _pairs(first, second):
        apart = _apart(a, b, training)
        if any(_unused_in_one(a, b, name) for name in apart):
            unused = [name for name in apart if _never_used(first, second, name)]
            training = [name for name in training if name not in unused]
            apart = [name for name in apart if name not in unused]
        if apart:
            return _parting(a, b, apart, last), None, equal, _one_sided(names)
        if evaluation is None and (apart := _apart(a, b, evaluated)):
            evaluation = _parting(a, b, apart, last)
        equal, last = equal + 1, _number(a)
    if last is None:
        return None, None, 0, []
    ends = [next(reversed(rows))[STEP] for rows in (first, second)]
    if evaluation is not None and evaluation.iteration == last and ends[0] != ends[1]:
        evaluation = None  # a run that ends is evaluated once more, one that goes on is not
    return None, evaluation, equal, _one_sided(names)


def _pairs(first: Rows, second: Rows) -> Iterator[tuple[Row, Row]]:
    """The rows of the iterations that both have."""
    ours, theirs = iter(first), iter(second)
    a, b = next(ours, None), next(theirs, None)
    while a is not None and b is not None:
        if _number(a) == _number(b):
            yield a, b
            a, b = next(ours, None), next(theirs, None)
        elif _number(a) < _number(b):
            a = next(ours, None)
        else:
            b = next(theirs, None)


def _apart(a: Row, b: Row, names: list[str]) -> list[str]:
    return [name for name in names if not _same(a, b, name)]


def _parting(a: Row, b: Row, apart: list[str], last: int | None) -> Parting:
    order = load_catalogue().order(apart)
    changes = [MetricChange(name, stage_of(name), _told(a, name), _told(b, name)) for name in order]
    changes.sort(key=lambda change: STAGES.index(change.stage))
    return Parting(_number(a), int(a[STEP]), last, changes, (int(a.get(RESTARTS) or 0), int(b.get(RESTARTS) or 0)))


def _one_sided(names: list[list[str]]) -> list[str]:
    notes = []
    for label, mine, other in (("A", *names), ("B", *names[::-1])):
        if only := [name for name in mine if name not in other]:
            notes.append(f"metrics only in {label}: {', '.join(only)}")
    return notes


def _unused_in_one(a: Row, b: Row, name: str) -> bool:
    told = _told(a, name), _told(b, name)
    return told in ((None, 0), (0, None))


def _never_used(first: Rows, second: Rows, name: str) -> bool:
    """Whether one run has no value of a metric and the other only zeros: nothing happened that it could tell apart."""
    seen = [{_told(row, name) for row in rows} for rows in (first, second)]
    return all(values <= {None, 0} for values in seen) and {None} in seen


def _number(row: dict[str, Any]) -> int:
    return int(row.get("iteration") or row[STEP])


def _same(a: Row, b: Row, name: str) -> bool:
    """Equal as text: −0 is not 0, and 1 is not 1.0."""
    ours, theirs = a.get(name), b.get(name)
    if ours != theirs or type(ours) is not type(theirs):
        return False
    # Zeros have a sign, and a null may mean a number that was not finite; most numbers are neither.
    return bool(ours) or repr(_told(a, name)) == repr(_told(b, name))


def _told(row: dict[str, Any], name: str) -> Any:
    if name in row.get("nonfinite", ()):
        return "not finite"
    return row.get(name)


def stage_of(name: str) -> str:
    """Where in an iteration a metric arises. Coefficients of the loss are settings: they do not depend on the data."""
    space = name.partition("/")[0]
    if name == space:
        if name in ("updates", "epoch"):
            return "update"
        return "counters"
    if space in ("rollout", "env"):
        return "data"
    if _is_evaluation(name):
        return "evaluation"
    if name in TARGETS:
        return "targets"
    if space == "train":
        if name in SETTINGS:
            return "settings"
        return "update"
    return "other"
