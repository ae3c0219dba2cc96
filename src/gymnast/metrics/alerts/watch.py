"""Evaluates all rules, one row at a time: the same code while a run trains and when its file is read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gymnast.errors import UsageError, did_you_mean
from gymnast.metrics.alerts.alert import Alert, Finding, Rule, sentence
from gymnast.metrics.alerts.course import Course, Now, take
from gymnast.metrics.alerts.facts import Facts
from gymnast.metrics.alerts.registry import all_rules

NEEDED = (
    "env_steps",
    "progress",
    "eval/exact_return",
    "eval/return_mean",
    "rollout/return_mean",
    "rollout/length_mean",
    "rollout/regret",
    "rollout/reward_mean",
    "train/advantage_std",
    "train/approx_kl",
    "train/explained_variance",
    "train/grad_norm",
    "train/return_target_mean",
    "train/reward_mean",
    "train/solved",
    "train/value_loss",
)
"""Metrics whose past rules and causes read besides the rules' own."""


class Watch:
    """The alerts of one run so far.

    A pure function of the config and the rows: a resumed run replays its file instead of saving what was known.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        actions: Sequence[int] = (),
        rules: Iterable[Rule] | None = None,
    ) -> None:
        """`config` as it is saved with the run; `actions` are the sizes of its discrete action's parts."""
        self.facts = Facts(config, actions)
        self.now = Now(self.facts, {}, {}, 0, 0.0, 0)
        self._rules = _configured(list(all_rules() if rules is None else rules), self.facts.get("alerts.rules") or {})
        self._names = tuple(dict.fromkeys([*NEEDED, *(name for one, _ in self._rules for name in one.metrics)]))
        self._alerts: dict[str, Alert] = {}
        self._stage: Any = None
        """Of a plan by stage: the one that the last row was trained in."""

    @property
    def courses(self) -> dict[str, Course]:
        """The past of every metric that a rule reads."""
        return self.now.courses

    @property
    def alerts(self) -> list[Alert]:
        """All alerts so far, sorted by id."""
        return [self._alerts[name] for name in sorted(self._alerts)]

    def observe(self, row: Mapping[str, Any]) -> list[Alert]:
        """Take one row in; returns the alerts that hold in it."""
        now = self.now
        if row.get("train/stage") != self._stage:  # returns of another task are no course of this one's
            self._stage = row.get("train/stage")
            now.courses.clear()
        step = int(row.get("env_steps") or 0)
        budget = self.facts.budget
        progress = row.get("progress")
        if progress is None:
            progress = min(1.0, step / budget) if budget else 0.0
        now.row, now.step, now.progress, now.rows = row, step, progress, now.rows + 1
        courses = now.courses
        take(courses, row, self._names, step)
        held = []
        for one, threshold in self._rules:
            if not one.every_row:
                first = courses.get(one.metrics[0])
                if first is None or first.step != step or not all(name in courses for name in one.metrics[1:]):
                    continue
            found = one.check(now, threshold)
            if found is not None:
                held.append(self._raise(one, found))
        return held

    def _raise(self, one: Rule, found: Finding | dict[str, float]) -> Alert:
        if not isinstance(found, Finding):
            found = Finding(found)
        now = self.now
        alert = self._alerts.get(one.id)
        if alert is None:
            alert = Alert(
                one.id, one.severity, "", one.means, one.advise(now, found.numbers), found.metrics or one.metrics,
                0, now.step, now.step,
            )  # fmt: skip
            self._alerts[one.id] = alert
        alert.count += 1
        alert.last_step = now.step
        alert.numbers = dict(found.numbers)
        alert.message = sentence(one, found.numbers)
        return alert


def replay(config: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, actions: Sequence[int] = ()) -> Watch:
    """The watch of a run whose rows are all there."""
    watch = Watch(config, actions=actions)
    for row in rows:
        watch.observe(row)
    return watch


def _configured(rules: list[Rule], settings: Mapping[str, Any]) -> list[tuple[Rule, float]]:
    """The rules that are on, each with its threshold."""
    known = [one.id for one in rules]
    for name in settings:
        if name not in known:
            raise UsageError(f"alerts.rules.{name}: there is no alert '{name}'.{did_you_mean(name, known)}")
    chosen = []
    for one in rules:
        mine = settings.get(one.id) or {}
        if mine.get("off"):
            continue
        threshold = mine.get("threshold")
        chosen.append((one, one.threshold if threshold is None else float(threshold)))
    return chosen
