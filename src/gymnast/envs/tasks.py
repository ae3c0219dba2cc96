"""The training envs of a run: one env in all slots, or the tasks of its plan."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import gymnasium as gym
from gymnasium import spaces

from gymnast.config.schema import EnvConfig, RunConfig
from gymnast.config.tasks import PlanConfig, slots_of, task_envs
from gymnast.envs.choose import choose_vectorization, cores, native_form
from gymnast.envs.make import SINGLE_ENVS, make_envs, make_one
from gymnast.envs.mixed import MixedVector
from gymnast.envs.task_switch import TaskSwitch
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import arrange
from gymnast.errors import ConfigError

THE_RUN = "the env section itself"
"""What errors call the env that tasks are changes of."""


def training_envs(config: RunConfig, n_envs: int) -> VectorEnv:
    """The envs that a new run begins with."""
    plan = config.plan
    if plan is None:
        return make_envs(config.env, n_envs)
    envs = {name: steppable(env) for name, env in task_envs(config).items()}
    check_spaces({THE_RUN: config.env, **envs})
    if plan.stages:
        return make_envs(envs[plan.stages[0]], n_envs)
    if plan.by == "episode":
        return _by_episode(plan, envs, n_envs)
    return _by_slot(plan, envs, n_envs)


def stage_envs(config: RunConfig, stage: str, n_envs: int) -> VectorEnv:
    """The envs of one stage."""
    return make_envs(steppable(task_envs(config)[stage]), n_envs)


def steppable(env: EnvConfig) -> EnvConfig:
    """A task's env section with a way to step it: the run's, where that is possible for this task."""
    way: str = env.vectorization
    if way == "auto" or (way == "native" and native_form(env) is None):
        way, _ = choose_vectorization(env.model_copy(update={"vectorization": "auto"}), envpool=False)
    return env.model_copy(update={"vectorization": way})


# ---- by slot -------------------------------------------------------------------------------------------------------


def _by_slot(plan: PlanConfig, envs: Mapping[str, EnvConfig], n_envs: int) -> VectorEnv:
    shares = slots_of(plan, n_envs)
    groups: dict[str, VectorEnv] = {}
    with ExitStack() as opened:
        for name, env in envs.items():
            workers = env.n_workers
            if env.vectorization == "workers":
                # All groups together have as many workers as one env alone would have, at least one each.
                whole = workers if isinstance(workers, int) else cores()
                workers = max(1, round(whole * shares[name] / n_envs))
            groups[name] = make_envs(env.model_copy(update={"n_workers": workers}), shares[name])
            opened.callback(groups[name].close)
        mixed = MixedVector(groups)
        opened.pop_all()
    return mixed


# ---- by episode ----------------------------------------------------------------------------------------------------


def _by_episode(plan: PlanConfig, envs: Mapping[str, EnvConfig], n_envs: int) -> VectorEnv:
    names, sections = list(envs), list(envs.values())
    shared: dict[str, list[object]] = {
        "wrappers": [arrange(env.wrappers)[1] for env in sections],
        "rewards": [env.rewards for env in sections],
    }
    for key, values in shared.items():
        other = next((name for name, value in zip(names, values, strict=True) if value != values[0]), None)
        if other is not None:
            raise ConfigError(
                f"Tasks by episode share what works on all envs at once, but '{names[0]}' and '{other}' differ in env.{key}: "
                "write the same there for all tasks, or use plan.by=slot."
            )
    single = next((env for env in sections if env.vectorization == "workers"), sections[0])
    if single.vectorization not in SINGLE_ENVS:
        single = single.model_copy(update={"vectorization": "inprocess"})
    weights = [task.weight for task in plan.tasks.values()]
    return make_envs(single, n_envs, one=functools.partial(make_switch, names, sections, weights))


def make_switch(
    names: Sequence[str], sections: Sequence[EnvConfig], weights: Sequence[float], render_mode: str | None = None
) -> gym.Env:
    """One env that plays the tasks by turns."""
    return TaskSwitch({name: make_one(env, render_mode) for name, env in zip(names, sections, strict=True)}, weights)


# ---- what all tasks share ------------------------------------------------------------------------------------------


def check_spaces(envs: Mapping[str, EnvConfig]) -> tuple[spaces.Space, spaces.Space]:
    """Observation and action space of all these envs; a ConfigError that says what differs where they are not the same."""
    found: dict[str, tuple[spaces.Space, spaces.Space]] = {}
    for name, env in envs.items():
        one = make_envs(env.model_copy(update={"vectorization": "inprocess"}), 1)
        found[name] = one.observation_space, one.action_space
        one.close()
        first = next(iter(found))
        for what, ours, theirs in zip(("observes", "acts in"), found[first], found[name], strict=True):
            if ours != theirs:
                raise ConfigError(
                    f"The tasks of a plan must show and take the same, but '{first}' {what} {_plain(ours)} and '{name}' {what} "
                    f"{_plain(theirs)}. "
                    f"{advice(ours, theirs)}"
                )
    return found[next(iter(found))]


def _plain(space: spaces.Space) -> str:
    """In one line, without numpy's columns."""
    return " ".join(str(space).split())


def advice(ours: spaces.Space, theirs: spaces.Space) -> str:
    """What makes two spaces one, where a wrapper can."""
    pictures = all(isinstance(one, spaces.Box) and len(one.shape) == len((1, 1, 1)) for one in (ours, theirs))
    if pictures:
        return "Wrapper 'resize' brings pictures to one size, 'gray' to one depth."
    if isinstance(ours, spaces.Discrete) and isinstance(theirs, spaces.Discrete):
        return "Give all tasks the same set of actions."
    return "Choose settings or wrappers under which they are equal."
