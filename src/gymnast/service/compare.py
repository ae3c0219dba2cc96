"""Runs side by side: the settings that differ, how each did, and groups of seeds as one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gymnast.config.leaves import leaves, text_of
from gymnast.metrics.verdict import threshold_of
from gymnast.runs.compare import Comparison, compare_runs, is_setting
from gymnast.runs.store import Run
from gymnast.service.columns import Numbers
from gymnast.service.metrics import DEFAULT_AXIS, Series, read_series
from gymnast.service.statistics import Score, bands, score_of

CURVE_POINTS = 200


@dataclass(frozen=True)
class SideBySide:
    """Two or more runs, with what has to be said about comparing them."""

    comparison: Comparison
    threshold: float | None
    """The score from which their env counts as solved; None if they are of different envs."""
    warning: str | None
    """Why their returns cannot be compared, or not quite."""


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds alone."""

    label: str
    """The config, and what sets this group apart from the others."""
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    """The keys in which the groups differ."""
    best: Score | None
    """Over the best evaluation of each run."""
    last: Score | None
    """Over the last one."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One metric over the seeds of a group."""

    group: str
    name: str
    axis: str
    x: Numbers
    mean: Numbers
    iqm: Numbers
    low: Numbers
    high: Numbers
    """Bounds of the 95 % interval of the interquartile mean, from resampled runs."""
    runs: tuple[int, ...]
    """How many runs have come that far; a run that ended early leaves the curve there."""


def side_by_side(runs: Sequence[Run], metrics: Sequence[str] = ()) -> SideBySide:
    """Compare runs; `metrics` are further catalogued metrics, by their last value."""
    found = compare_runs(runs, metrics)
    # A threshold is one env's: where envs differ, no score is held against it.
    threshold = None
    if found.same_env:
        threshold = threshold_of(runs[0].config())
    warning = None
    if not found.same_env:
        warning = "The runs are of different environments: their returns cannot be compared."
    elif found.protocol:
        warning = f"Their returns are not measured alike: {', '.join(found.protocol)} differ."
    return SideBySide(found, threshold, warning)


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Put runs with the same settings together, whatever their seeds; groups in the order of their first runs."""
    settings = {run: _settings(run) for run in runs}
    together: dict[str, list[Run]] = {}
    for run, values in settings.items():
        together.setdefault(json.dumps(values, sort_keys=True), []).append(run)
    groups = list(together.values())
    different = _different([settings[members[0]] for members in groups])
    return _with_own_labels([_group(members, settings[members[0]], different) for members in groups])


def group_curves(
    runs: Sequence[Run], metric: str, *, axis: str = DEFAULT_AXIS, points: int = CURVE_POINTS
) -> list[Curve]:
    """One curve with its band per group of runs; groups without a value of this metric have none."""
    by_id = {run.id: run for run in runs}
    curves = [
        _curve(group.label, [by_id[name] for name in group.runs], metric, axis, points) for group in group_runs(runs)
    ]
    return [curve for curve in curves if curve is not None]


def _settings(run: Run) -> dict[str, Any]:
    """As saved: nothing is imported, and runs of other versions can be grouped, too."""
    config = {key: value for key, value in run.config().items() if key not in ("name", "spec")}
    return {key: value for key, value in leaves(config).items() if is_setting(key)}


def _different(groups: Sequence[dict[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for group in groups for key in group)
    return [key for key in keys if len({json.dumps(group.get(key), sort_keys=True) for group in groups}) > 1]


def _group(runs: list[Run], settings: dict[str, Any], different: list[str]) -> Group:
    configs, states = [run.config() for run in runs], [run.status() for run in runs]
    return Group(
        label=str(configs[0].get("name") or runs[0].id),
        runs=tuple(run.id for run in runs),
        seeds=tuple(_seed(config) for config in configs),
        settings={key: settings.get(key) for key in different},
        best=score_of([state.best_return for state in states if state.best_return is not None]),
        last=score_of([state.last_return for state in states if state.last_return is not None]),
    )


def _with_own_labels(groups: list[Group]) -> list[Group]:
    """A config's name is enough where no other group has it."""
    names = [group.label for group in groups]
    if len(set(names)) == len(names):
        return groups
    return [
        replace(group, label=" ".join([group.label, *(f"{k}={text_of(v)}" for k, v in group.settings.items())]))
        for group in groups
    ]


def _seed(config: dict[str, Any]) -> int:
    train = config.get("train")
    seed = None
    if isinstance(train, dict):
        seed = train.get("seed")
    if isinstance(seed, int):
        return seed
    return 0


def _curve(label: str, runs: list[Run], metric: str, axis: str, points: int) -> Curve | None:
    return over_seeds(label, [one for run in runs for one in read_series(run, [metric], axis=axis)], points)


def over_seeds(label: str, runs: Sequence[Series], points: int = CURVE_POINTS) -> Curve | None:
    """One metric of several runs as one curve with its band.

    Runs are read off at the same places, with straight lines between their own points and nothing beyond them.
    """
    series = [one for one in runs if len(one.x)]
    if not series:
        return None
    x = np.linspace(min(one.x[0] for one in series), max(one.x[-1] for one in series), points)
    heights = np.stack([np.interp(x, one.x, one.y, left=np.nan, right=np.nan) for one in series])
    mean, iqm, low, high = (np.full(points, np.nan) for _ in range(4))
    there = np.isfinite(heights)
    # Stretches of x that the same runs cover are computed at once.
    for pattern in np.unique(there, axis=1).T:
        here = (there == pattern[:, None]).all(axis=0)
        if pattern.any():
            part = heights[pattern][:, here]
            mean[here] = part.mean(axis=0)
            iqm[here], low[here], high[here] = bands(part)
    runs_there = tuple(there.sum(axis=0).tolist())
    return Curve(label, series[0].name, series[0].axis, x, mean, iqm, low, high, runs_there)
