"""Runs side by side: the settings that differ and how each did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gymnast.errors import UsageError, did_you_mean
from gymnast.metrics.catalogue import Catalogue, load_catalogue
from gymnast.metrics.sinks.jsonl import NOT_METRICS, MetricRows
from gymnast.runs.store import Run

PROTOCOL = ("env.kwargs", "env.atari", "env.time_limit", "env.wrappers", "eval.deterministic", "eval.env")
"""Settings that change what a return means; runs of one env that agree in them can be compared."""

TO_SOLVED = {
    "vec steps to solved": "vec_steps",
    "env steps to solved": "env_steps",
    "seconds to solved": "time/seconds",
}
"""What it took to solve the env, and the metric that says so in the row of that evaluation."""
NOT_SETTINGS = frozenset(
    {
        "train.seed",
        "train.device",
        "train.threads",
        "env.vectorization",
        "env.n_workers",
        "env.core_turns",
        "env.start_method",
    }
)
"""Keys in which runs of one group may differ: the seed, and where and how fast they run."""


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
    """Keys that differ. None if a run does not have the key."""
    results: list[Measure] = field(default_factory=list)
    same_env: bool = True
    protocol: tuple[str, ...] = ()
    """Keys of `PROTOCOL` that differ, so that the returns do not measure the same."""


def compare_runs(runs: Sequence[Run], metrics: Sequence[str] = ()) -> Comparison:
    """Compare two or more runs; `metrics` are further catalogued metrics, by their last value."""
    configs = [run.config() for run in runs]
    same_env = len({_at(config, "env.id") for config in configs}) == 1
    catalogue = load_catalogue()
    courses = [_course(rows_of(run), metrics) for run in runs]
    return Comparison(
        runs=tuple(run.id for run in runs),
        settings=_settings(runs, configs),
        results=[*_results(runs, courses, same_env), *(_metric(name, courses, catalogue) for name in metrics)],
        same_env=same_env,
        protocol=tuple(protocol_differences(configs)),
    )


def rows_of(run: Run) -> MetricRows | None:
    """The metrics of a run; None when it has not logged yet."""
    if run.metrics_path.is_file():
        return MetricRows(run.metrics_path)
    return None


@dataclass
class _Course:
    """What a comparison needs of a run's metrics."""

    solved: dict[str, Any] | None = None
    """The row of the evaluation that solved the env."""
    last: dict[str, Any] = field(default_factory=dict)
    """The last known value of each metric asked for."""
    known: set[str] = field(default_factory=set)
    """The metrics that the run logs."""


def _course(rows: MetricRows | None, metrics: Sequence[str]) -> _Course:
    course = _Course()
    row: dict[str, Any] = {}
    for row in rows or ():
        if course.solved is None and row.get("train/solved") == 1:
            course.solved = row
        course.last |= {name: row[name] for name in metrics if row.get(name) is not None}
    course.known = row.keys() - set(NOT_METRICS)
    return course


def protocol_differences(configs: Sequence[dict[str, Any]]) -> list[str]:
    """The settings in which these configs measure differently."""
    return [key for key in PROTOCOL if any(_at(config, key) != _at(configs[0], key) for config in configs[1:])]


def _at(config: dict[str, Any], key: str) -> Any:
    node: Any = config
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


# --- settings -----------------------------------------------------------------------------------------------


def is_setting(key: str) -> bool:
    """Whether a key can change what comes out of a run. Of what is shown and kept, only the window of running means can."""
    if key.startswith("log."):
        return key == "log.window"
    return key not in NOT_SETTINGS


def _settings(runs: Sequence[Run], configs: Sequence[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    from gymnast.config.compare import compare
    from gymnast.config.leaves import leaves
    from gymnast.runs.trust import usable

    try:
        resolved = [usable(run, playing=False) for run in runs]
    except UsageError:  # of another version, or of a plug-in that must not be imported: as they were saved
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


def _results(runs: Sequence[Run], courses: list[_Course], same_env: bool) -> list[Measure]:
    states = [run.status() for run in runs]
    fps = [state.env_steps / state.wall_seconds if state.wall_seconds > 0 else None for state in states]
    direction = "up" if same_env else "none"  # returns of different envs have no order
    rank = "down" if same_env else "none"
    to_solved = {
        name: [None if course.solved is None else course.solved.get(key) for course in courses]
        for name, key in TO_SOLVED.items()
    }
    return [
        Measure("status", tuple(run.shown_state() for run in runs)),
        _measure("evaluation", [state.last_return for state in states], direction),
        _measure("best evaluation", [state.best_return for state in states], direction),
        *(_measure(name, values, rank) for name, values in to_solved.items()),
        _measure("vec steps", [state.vec_steps for state in states], "none"),
        _measure("env steps", [state.env_steps for state in states], "none"),
        _measure("steps/s", fps, "up"),
        _measure("seconds", [state.wall_seconds for state in states], "none"),
    ]


def _metric(name: str, courses: list[_Course], catalogue: Catalogue) -> Measure:
    known = {metric.name for metric in catalogue}.union(*(course.known for course in courses))
    if name not in known:
        raise UsageError(f"Unknown metric '{name}'.{did_you_mean(name, known)}")
    metric = catalogue.get(name)
    values = [course.last.get(name) for course in courses]
    return _measure(name, values, metric.direction if metric else "none")


def _measure(name: str, values: Sequence[Any], direction: str) -> Measure:
    present = [value for value in values if isinstance(value, int | float)]
    if direction not in ("up", "down") or not present or len(values) < 2:
        return Measure(name, tuple(values))
    top = max(present) if direction == "up" else min(present)
    return Measure(name, tuple(values), tuple(place for place, value in enumerate(values) if value == top))
