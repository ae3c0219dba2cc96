"""An episode as a table (STO-3): one row per step, all that its trace knows, for Parquet, CSV and the inspector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gymnast.config.spec import EnvSpec
from gymnast.evaluation.components import components
from gymnast.evaluation.labels import action_label
from gymnast.evaluation.trace import EpisodeTrace
from gymnast.metrics.parquet import Kind

Row = dict[str, Any]


def columns_of(trace: EpisodeTrace, spec: EnvSpec) -> dict[str, Kind]:
    """Names and types of the columns, in their order."""
    kinds: dict[str, Kind] = {"step": "int"}
    for row in rows_of(trace, spec):
        for name, value in row.items():
            kinds[name] = _wider(kinds.get(name), value)
    return kinds


def rows_of(trace: EpisodeTrace, spec: EnvSpec) -> Iterator[Row]:
    """One row per step. What the trace does not know (probabilities of continuous actions …) has no column."""
    for step in range(len(trace)):
        row: Row = {"step": step}
        row |= components(trace.observations[step], spec)
        row |= _action(trace.actions[step], spec)
        row["executed"] = str(trace.executed[step])
        if trace.log_probs:
            row["log_prob"] = trace.log_probs[step]
        if trace.probabilities:
            names = _names_of_choices(len(trace.probabilities[step]), spec)
            row |= {f"p({name})": float(p) for name, p in zip(names, trace.probabilities[step])}
        row["value"] = trace.values[step]
        row["reward"] = trace.rewards[step]
        if trace.own_rewards:
            row["env_reward"] = trace.own_rewards[step]
        if trace.terms:
            row |= {f"term.{name}": value for name, value in trace.terms[step].items()}
        if trace.returns is not None:
            row["return"] = float(trace.returns[step])
        if trace.advantages is not None:
            row["advantage"] = float(trace.advantages[step])
        if trace.td_errors is not None:
            row["td_error"] = float(trace.td_errors[step])
        row["terminated"] = int(trace.terminations[step])
        row["truncated"] = int(trace.truncations[step])
        yield row


def _action(action: Any, spec: EnvSpec) -> Row:
    """The choice as numbers, and in words."""
    numbers = np.asarray(action).reshape(-1)
    label = action_label(action, spec)
    if numbers.size == 1 and not isinstance(action, list):
        return {"action": numbers[0].item(), "action_label": label}
    names = [component.name for component in spec.action_components]
    if len(names) != numbers.size:
        names = [str(number) for number in range(numbers.size)]
    return {f"action.{name}": one.item() for name, one in zip(names, numbers)} | {"action_label": label}


def _names_of_choices(number: int, spec: EnvSpec) -> list[str]:
    """Labels where each choice has one of its own; two columns must not share a name."""
    if len(spec.actions) == number and len(set(spec.actions)) == number:
        return spec.actions
    return [str(choice) for choice in range(number)]


def _wider(known: Kind | None, value: Any) -> Kind:
    """A column is of the widest type of its values."""
    kind: Kind = "float"
    if isinstance(value, str):
        kind = "text"
    elif isinstance(value, (bool, int)):
        kind = "int"
    order: tuple[Kind, ...] = ("int", "float", "text")
    if known is None:
        return kind
    return max(known, kind, key=order.index)
