"""The tasks of a plan in words, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnast.config.schema import RunConfig
from gymnast.config.tasks import task_thresholds


def changes_in_words(changes: Mapping[str, Any]) -> str:
    """`wind_power 10, time_limit 500`: what a task's env has other than the env section, without the names of mappings."""
    words = []
    for key, value in changes.items():
        if isinstance(value, Mapping):
            words.append(changes_in_words(value))
        elif key == "id":
            words.append(str(value))
        else:
            words.append(f"{key} {_plain(value)}")
    return ", ".join(word for word in words if word)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_plain(one) for one in value) + "]"
    if isinstance(value, Mapping):
        return "{" + changes_in_words(value) + "}"
    return str(value)


def end_in_words(config: RunConfig, name: str) -> str:
    """`until 0.94 or 100,000 steps`: when a stage ends."""
    assert config.plan is not None
    threshold, steps = task_thresholds(config)[name], config.plan.tasks[name].env_steps
    if threshold is None:
        return "to the end of the budget" if steps is None else f"for {steps:,} steps"
    if steps is None:
        return f"until {threshold:g}"
    return f"until {threshold:g} or {steps:,} steps"


def summary_of(config: RunConfig) -> list[tuple[str, str]]:
    """For the lines before training."""
    plan = config.plan
    if plan is None:
        return []
    if plan.stages:
        stages = " → ".join(f"{name} ({end_in_words(config, name)})" for name in plan.stages)
        return [("stages", stages)]
    return [("tasks", f"by {plan.by}: {', '.join(plan.tasks)}")]
