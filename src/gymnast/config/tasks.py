"""The plan of a run with several tasks (ENV-13, ENV-14): by env slot, by episode, or one stage after the other.

A task is the run's env section with changes. What differs is written per task, what all share stays in `env`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from gymnast.config.model import Model
from gymnast.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from gymnast.config.schema import EnvConfig, RunConfig

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
FEWEST = 2
"""Tasks of a plan."""
OF_THE_RUN = frozenset(
    {
        "n_envs",
        "vectorization",
        "n_workers",
        "core_turns",
        "resume_every",
        "start_method",
        "worker_timeout",
        "on_worker_failure",
        "max_restarts",
    }
)
"""Keys of the env section that say how envs are run, not what they are: no task has its own."""


class TaskConfig(Model):
    """One task of a plan."""

    env: dict[str, Any] = Field(default_factory=dict)
    """What its env has other than the env section: `{kwargs: {wind_power: 10}}`, or another `id`. Mappings merge."""
    weight: PositiveFloat = 1.0
    """Its share of the slots or episodes, next to the weights of the others."""
    solved_at: float | None = None
    """Mean return at which it counts as solved; `spec.solved_at` by default, unless the task is of another env id. A stage ends
    there, as soon as an evaluation is `eval.standard_errors` above it."""
    env_steps: PositiveInt | None = None
    """The most env steps that a stage may take, whether it is solved by then or not."""


class PlanConfig(Model):
    """Several tasks in one run."""

    by: Literal["slot", "episode", "stage"]
    """`slot`: every env slot has its task for the whole run. `episode`: every slot draws the task of its next episode.
    `stage`: all slots have the same task, and the next one follows when it is solved or its steps are spent."""
    tasks: dict[str, TaskConfig]
    """Tasks by name; stages in their order."""
    start: str | None = None
    """The stage to begin with; earlier ones are left out. `plan.start=<the last>` trains on the last stage alone, to compare."""
    optimizer: Literal["keep", "fresh"] = "keep"
    """What becomes of the optimizer's moments when a stage begins."""

    @property
    def stages(self) -> list[str]:
        """The names of the stages that are trained on, in order; none where tasks are not stages."""
        names = list(self.tasks)
        if self.by != "stage":
            return []
        if self.start is None:
            return names
        return names[names.index(self.start) :]

    @model_validator(mode="after")
    def _named_tasks(self) -> PlanConfig:
        if len(self.tasks) < FEWEST:
            raise ValueError(f"a plan has at least {FEWEST} tasks (got {len(self.tasks)})")
        for name in self.tasks:
            if not _NAME.fullmatch(name):
                raise ValueError(f"a task's name has letters, digits, - and _ only, not '{name}'")
        return self

    @model_validator(mode="after")
    def _keys_of_its_kind(self) -> PlanConfig:
        for name, task in self.tasks.items():
            if self.by == "stage" and "weight" in task.model_fields_set and task.weight != 1.0:
                raise ValueError(
                    f"task '{name}' has a weight, which is for tasks by slot or by episode; these are stages"
                )
            if self.by != "stage" and task.env_steps is not None:
                raise ValueError(f"task '{name}' has env_steps, which are for stages; these are tasks by {self.by}")
        return self

    @model_validator(mode="after")
    def _known_start(self) -> PlanConfig:
        if self.start is None:
            return self
        if self.by != "stage":
            raise ValueError(f"start is for stages; these are tasks by {self.by}")
        if self.start not in self.tasks:
            hint = did_you_mean(self.start, self.tasks)
            raise ValueError(f"start names no stage (got '{self.start}').{hint} Stages: {', '.join(self.tasks)}")
        return self


def changed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes`: mappings merge, everything else is replaced."""
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = changed(below, value)
        else:
            merged[key] = value
    return merged


def task_envs(config: RunConfig) -> dict[str, EnvConfig]:
    """The env section of every task by name; empty without a plan."""
    if config.plan is None:
        return {}
    base = config.env.model_dump()
    found = {}
    for name, task in config.plan.tasks.items():
        env = found[name] = type(config.env).model_validate(changed(base, task.env))
        if env.rewards is not None:
            env.rewards.learn_names(config.reward_names)
    return found


def reward_terms(config: RunConfig) -> tuple[str, ...]:
    """The names of the reward's terms, those of all tasks together."""
    names = dict.fromkeys(config.env.reward_terms)
    for env in task_envs(config).values():
        names |= dict.fromkeys(env.reward_terms)
    return tuple(names)


def task_thresholds(config: RunConfig) -> dict[str, float | None]:
    """The mean return at which each task counts as solved; that of the spec holds for tasks of the same env id."""
    found = {}
    for name, task in ({} if config.plan is None else config.plan.tasks).items():
        same_env = task.env.get("id", config.env.id) == config.env.id
        found[name] = config.spec.solved_at if task.solved_at is None and same_env else task.solved_at
    return found


def with_task(config: RunConfig, name: str) -> RunConfig:
    """The config of a run on this task alone."""
    env = task_envs(config)[name]
    spec = config.spec.model_copy(update={"solved_at": task_thresholds(config)[name]})
    return config.model_copy(update={"env": env, "spec": spec, "plan": None})


def slots_of(plan: PlanConfig, n_envs: int) -> dict[str, int]:
    """How many slots each task has: by weight, at least one, all of them together."""
    if n_envs < len(plan.tasks):
        raise ConfigError(
            f"'plan.tasks' has {len(plan.tasks)} tasks and 'env.n_envs' is {n_envs}: each task needs a slot. Raise env.n_envs, "
            "or draw tasks by episode (plan.by=episode)."
        )
    total = sum(task.weight for task in plan.tasks.values())
    exact = {name: n_envs * task.weight / total for name, task in plan.tasks.items()}
    found = {name: max(1, int(share)) for name, share in exact.items()}
    while sum(found.values()) != n_envs:
        missing = n_envs - sum(found.values())
        # The one that is farthest from its share gets one more, or gives one.
        if missing > 0:
            name = max(exact, key=lambda name: exact[name] - found[name])
            found[name] += 1
        else:
            name = max((one for one in exact if found[one] > 1), key=lambda name: found[name] - exact[name])
            found[name] -= 1
    return found


def check_plan(config: RunConfig, plan: PlanConfig) -> None:
    """Refuse what no run with this plan could do."""
    for name, task in plan.tasks.items():
        _check_keys(name, task.env, type(config.env).model_fields)
    _check_envs(config, plan)
    if isinstance(config.eval.env, list):
        raise ValueError("eval.env is a list of settings, and a plan has one score per task already: keep one of them")
    if config.env.vectorization == "envpool":
        raise ValueError("tasks cannot be mixed by EnvPool: set env.vectorization to auto, inprocess or workers")
    if plan.by != "stage":
        return
    thresholds = task_thresholds(config)
    for name in plan.stages[:-1]:
        if thresholds[name] is None and plan.tasks[name].env_steps is None:
            raise ValueError(f"stage 'plan.tasks.{name}' would never end: give it solved_at or env_steps")
    if config.eval.mode == "worker":
        raise ValueError("stages wait for each evaluation, which decides about the next one: leave eval.mode at auto")


def _check_keys(name: str, changes: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for key in changes:
        where = f"plan.tasks.{name}.env.{key}"
        if key not in known:
            raise ValueError(f"unknown key '{where}'.{did_you_mean(key, known)}")
        if key in OF_THE_RUN:
            raise ValueError(f"'{where}' belongs to the whole run: set env.{key}")


def _check_envs(config: RunConfig, plan: PlanConfig) -> None:
    """Each task's env section as a whole; a mistake is reported with its key."""
    base = config.env.model_dump()
    for name, task in plan.tasks.items():
        try:
            type(config.env).model_validate(changed(base, task.env))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, (f"plan.tasks.{name}.env", *first["loc"])))
            message = str(first["msg"]).removeprefix("Value error, ")
            raise ValueError(f"'{key}': {message[:1].lower()}{message[1:]}") from None
