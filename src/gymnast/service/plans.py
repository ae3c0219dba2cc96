"""Plans: what a config or a run does with several tasks, how far a run has come, and runs with and without earlier stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from gymnast.config.load import Resolved
from gymnast.config.plan import make_plan
from gymnast.config.schema import RunConfig
from gymnast.config.task_words import changes_in_words, end_in_words
from gymnast.config.tasks import PlanConfig, slots_of, task_thresholds
from gymnast.errors import UsageError
from gymnast.runs.refs import resolve_runs
from gymnast.runs.stages import StageRecord, read
from gymnast.runs.store import Run, runs_root
from gymnast.runs.trust import usable


@dataclass(frozen=True)
class TaskCard:
    """One task of a plan, in words."""

    name: str
    changes: str
    """What its env has other than the env section."""
    threshold: float | None
    share: float
    """Of the slots or episodes; 1 for stages, which have all."""
    words: str
    """`4 of 16 slots`, `25 % of the episodes`, or when a stage ends."""
    left_out: bool = False
    """A stage before `plan.start`."""
    record: StageRecord | None = None
    """What a run has made of the stage; None where it has not begun."""


@dataclass(frozen=True)
class PlanCard:
    """A plan as people read it."""

    name: str
    """Of the config or the run."""
    by: str
    env_steps: int
    """Budget of the run."""
    optimizer: str
    tasks: tuple[TaskCard, ...]
    records: tuple[StageRecord, ...] = ()
    """Of the stages that a run has begun."""


def plan_card(name: str, resolved: Resolved, run: Run | None = None) -> PlanCard:
    """The plan of a resolved config; a UsageError where it has none."""
    config = resolved.config
    if config.plan is None:
        raise UsageError(
            f"{name} has no plan: it trains on {config.env.id} alone. docs/plans.md says how to write one."
        )
    records = tuple(read(run.folder)) if run is not None else ()
    sizes = make_plan(config)
    tasks = tuple(_task(config, config.plan, task, sizes.n_envs, records) for task in config.plan.tasks)
    return PlanCard(name, config.plan.by, sizes.env_steps, config.plan.optimizer, tasks, records)


def _task(config: RunConfig, plan: PlanConfig, name: str, n_envs: int, records: Sequence[StageRecord]) -> TaskCard:
    task = plan.tasks[name]
    share = task.weight / sum(one.weight for one in plan.tasks.values())
    if plan.by == "slot":
        slots = slots_of(plan, n_envs)[name]
        share, words = slots / n_envs, f"{slots} of {n_envs} slots"
    elif plan.by == "episode":
        words = f"{share:.0%} of the episodes"
    else:
        share, words = 1.0, end_in_words(config, name)
    return TaskCard(
        name,
        changes_in_words(task.env) or "as the env section",
        task_thresholds(config)[name],
        share,
        words,
        left_out=plan.by == "stage" and name not in plan.stages,
        record=next((record for record in records if record.name == name), None),
    )


# ---- with and without earlier stages -------------------------------------------------------------------------------


@dataclass(frozen=True)
class StagedRun:
    """How many env steps one run took for its stages."""

    run: str
    seed: int
    start: str
    """The stage it began with."""
    steps: dict[str, int | None]
    """Env steps of each stage until its threshold; None where it was not reached."""
    total: int | None
    """Env steps of the whole run until the last stage's threshold."""
    budget: int
    """Env steps of the whole run."""
    score: float | None
    """Of its last weights on the last stage."""


@dataclass(frozen=True)
class StagesComparison:
    """Runs with and without earlier stages."""

    stages: tuple[str, ...]
    runs: tuple[StagedRun, ...]

    @property
    def medians(self) -> dict[str, tuple[float | None, int, int]]:
        """By first stage: the median of all steps to the last threshold, and how many runs of how many reached it.

        A run that did not reach it counts as slower than all that did; where that is the median, there is none.
        """
        found = {}
        for start in dict.fromkeys(run.start for run in self.runs):
            totals = [run.total for run in self.runs if run.start == start]
            reached = [total for total in totals if total is not None]
            middle = median([total if total is not None else float("inf") for total in totals])
            found[start] = (None if middle == float("inf") else middle, len(reached), len(totals))
        return found


def compare_stages(references: Sequence[str], root: Path | None = None) -> StagesComparison:
    """Steps to threshold, stage by stage and together, of runs that end in the same stage."""
    found: list[StagedRun] = []
    stages: list[str] = []
    for run in resolve_runs(runs_root(root), references):
        config = usable(run, playing=False).config
        if config.plan is None or not config.plan.stages:
            raise UsageError(f"Run {run.id} has no plan by stage: there is nothing to compare of it.")
        names = list(config.plan.tasks)
        if stages and names != stages:
            raise UsageError(f"Run {run.id} has the stages {', '.join(names)}, the runs before it {', '.join(stages)}.")
        stages = names
        found.append(_staged(run, config, config.plan))
    return StagesComparison(tuple(stages), tuple(found))


def _staged(run: Run, config: RunConfig, plan: PlanConfig) -> StagedRun:
    records = {record.name: record for record in read(run.folder)}
    last = records.get(plan.stages[-1])
    score = None if last is None else last.scores.get(last.name)
    return StagedRun(
        run.id,
        config.train.seed,
        plan.stages[0],
        {name: record.steps_to_threshold for name, record in records.items()},
        None if last is None else last.reached,
        run.status().env_steps,
        None if score is None else score.mean,
    )
