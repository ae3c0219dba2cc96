"""Runs side by side: the settings that differ and how each did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gymnast.errors import ConfigError, UsageError, did_you_mean
from gymnast.metrics.catalogue import Catalogue, load_catalogue
from gymnast.metrics.sinks.jsonl import NOT_METRICS, read_rows
from gymnast.runs.store import Run

PROTOCOL = ("env.kwargs", "env.atari", "env.time_limit", "env.wrappers", "eval.deterministic", "eval.env")
"""Settings that change what a return means; runs of one env that agree in them can be compared."""


@dataclass(frozen=True)
class Measure:
    """One result of every run, and which of them did best."""

    name: str
    values: tuple[Any, ...]
    best: tuple[int, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Runs side by side; values are in the order of the runs."""

    runs: tuple[str, ...]
    settings: dict[str, tuple[Any, ...]]
    """Keys that differ. None where a run does not have the key."""
    results: list[Measure] = field(default_factory=list)
    same_env: bool = True
    protocol: tuple[str, ...] = ()
    """Keys of `PROTOCOL` that differ, so that the returns do not measure the same."""


def compare_runs(runs: Sequence[Run], metrics: Sequence[str] = ()) -> Comparison:
    """Compare two or more runs; `metrics` are further catalogued metrics, by their last value."""
    configs = [run.config() for run in runs]
    same_env = len({_at(config, "env.id") for config in configs}) == 1
    catalogue = load_catalogue()
    rows = [rows_of(run) for run in runs]
    return Comparison(
        runs=tuple(run.id for run in runs),
        settings=_settings(configs),
        results=[*_results(runs, rows, same_env), *(_metric(name, rows, catalogue) for name in metrics)],
        same_env=same_env,
        protocol=tuple(protocol_differences(configs)),
    )


def rows_of(run: Run) -> list[dict[str, Any]]:
    """The metrics of a run; none when it has not logged yet."""
    return read_rows(run.metrics_path) if run.metrics_path.is_file() else []


def protocol_differences(configs: Sequence[dict[str, Any]]) -> list[str]:
    """The settings in which these configs measure differently."""
    return [key for key in PROTOCOL if any(_at(config, key) != _at(configs[0], key) for config in configs[1:])]


def _at(config: dict[str, Any], key: str) -> Any:
    node: Any = config
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


# --- settings -----------------------------------------------------------------------------------------------


def _settings(configs: Sequence[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    from gymnast.config.compare import compare
    from gymnast.config.leaves import leaves
    from gymnast.config.load import from_saved

    try:
        resolved = [from_saved(config) for config in configs]
    except ConfigError:  # of another version: as they were saved
        flat = [
            leaves({key: value for key, value in config.items() if key not in ("name", "spec")}) for config in configs
        ]
        keys = list(dict.fromkeys(key for side in flat for key in side))
        return {key: row for key in keys if not _equal(row := tuple(side.get(key) for side in flat))}
    flat = [leaves(side.config.model_dump(mode="json", exclude={"name"})) for side in resolved]
    different = [change.key for other in resolved[1:] for change in compare(resolved[0], other)]
    sections = list(dict.fromkeys(key.partition(".")[0] for key in flat[0]))
    keys = sorted(dict.fromkeys(different), key=lambda key: sections.index(key.partition(".")[0]))
    table = {key: tuple(side.get(key) for side in flat) for key in keys}
    return {key: row for key, row in table.items() if any(value is not None for value in row)}


def _equal(values: tuple[Any, ...]) -> bool:
    return all(value == values[0] and type(value) is type(values[0]) for value in values[1:])


# --- results ------------------------------------------------------------------------------------------------


def _results(runs: Sequence[Run], rows: list[list[dict[str, Any]]], same_env: bool) -> list[Measure]:
    states = [run.status() for run in runs]
    fps = [state.env_steps / state.wall_seconds if state.wall_seconds > 0 else None for state in states]
    direction = "up" if same_env else "none"  # returns of different envs have no order
    solved = [_solved_at(course) for course in rows]
    return [
        Measure("status", tuple(run.shown_state() for run in runs)),
        _measure("evaluation", [state.last_return for state in states], direction),
        _measure("best evaluation", [state.best_return for state in states], direction),
        _measure("env steps to solved", [steps for steps, _ in solved], "down" if same_env else "none"),
        _measure("seconds to solved", [seconds for _, seconds in solved], "down" if same_env else "none"),
        _measure("env steps", [state.env_steps for state in states], "none"),
        _measure("steps/s", fps, "up"),
        _measure("seconds", [state.wall_seconds for state in states], "none"),
    ]


def _solved_at(rows: list[dict[str, Any]]) -> tuple[int | None, float | None]:
    """Env steps and training seconds at the evaluation that solved the env."""
    for row in rows:
        if row.get("train/solved") == 1:
            return row.get("env_steps"), row.get("time/seconds")
    return None, None


def _metric(name: str, rows: list[list[dict[str, Any]]], catalogue: Catalogue) -> Measure:
    known = dict.fromkeys([metric.name for metric in catalogue])
    known |= dict.fromkeys(key for course in rows for key in (course[-1] if course else ()) if key not in NOT_METRICS)
    if name not in known:
        raise UsageError(f"Unknown metric '{name}'.{did_you_mean(name, known)}")
    metric = catalogue.get(name)
    values = [next((row[name] for row in reversed(course) if row.get(name) is not None), None) for course in rows]
    return _measure(name, values, metric.direction if metric else "none")


def _measure(name: str, values: Sequence[Any], direction: str) -> Measure:
    present = [value for value in values if isinstance(value, int | float)]
    if direction not in ("up", "down") or not present or len(values) < 2:
        return Measure(name, tuple(values))
    top = max(present) if direction == "up" else min(present)
    return Measure(name, tuple(values), tuple(place for place, value in enumerate(values) if value == top))
