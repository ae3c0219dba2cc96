"""Learning curves of runs as charts: what `gymnast plot`, `gymnast runs compare`, `gymnast.plot` and the web studio draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gymnast.errors import GymnastError, UsageError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.charts import figure, page, svg
from gymnast.metrics.charts.chart import Chart, Line
from gymnast.metrics.charts.thinning import thinned
from gymnast.metrics.verdict import threshold_of
from gymnast.redaction import redact
from gymnast.runs.files import replacing
from gymnast.runs.store import Run
from gymnast.service.compare import Group, group_runs, over_seeds
from gymnast.service.metric_names import Selection
from gymnast.service.metrics import DEFAULT_AXIS, Series, metric_names, read_series
from gymnast.service.smoothing import smoothed

DEFAULT_METRICS = ("rollout/return_mean",)
RETURNS = ("rollout/return_mean", "eval/return_mean", "eval/exact_return")
"""Metrics that the threshold of an env is about."""
AXIS_LABELS = {"vec_steps": "vec steps", "env_steps": "env steps", "time": "seconds"}
POINTS = 400
"""Of one line: more than the pixels of a chart would show."""
BAND = "line: interquartile mean over seeds; band: its 95 % interval"
SUFFIXES = (".png", ".pdf", ".svg", ".html")


class NothingToDrawError(UsageError):
    """Runs without a value of what was asked for."""


def plot(
    runs: Sequence[Run],
    metrics: Sequence[str] = (),
    *,
    axis: str = DEFAULT_AXIS,
    smooth: bool = False,
    each: bool = False,
) -> list[Chart]:
    """One chart per metric; runs that differ in their seeds are one line with a band, unless `each` asks for all of them.

    Metrics are named as everywhere: ours, SB3's or CleanRL's, a pattern (`train/*`) or an expression (`re:loss$`).
    """
    groups = _groups(runs, each=each)
    asked = list(metrics) or list(DEFAULT_METRICS)
    by_run = {run.id: _by_name(read_series(run, asked, axis=axis)) for run in runs}
    names = list(dict.fromkeys(name for series in by_run.values() for name in series))
    charts = [_chart(name, groups, by_run, runs, axis, smooth=smooth) for name in names]
    drawn = [chart for chart in charts if chart.lines]
    if not drawn:
        raise NothingToDrawError(_nothing_to_draw(runs, asked))
    # A pattern takes in much that these runs never logged; a name that was asked for is missed.
    missing = [name for name in asked if name in names and not any(chart.title == name for chart in drawn)]
    if missing:
        raise NothingToDrawError(_nothing_to_draw(runs, missing))
    return [replace(chart, title=_title(chart.title, runs)) for chart in drawn]


def write_charts(charts: Sequence[Chart], path: Path, *, title: str = "Learning curves") -> None:
    """A file of the kind its suffix says: .svg and .html by our own code, .png and .pdf by matplotlib."""
    suffix = suffix_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            if suffix == ".svg":
                file.write(redact(svg.document(charts)).encode())
            elif suffix == ".html":
                file.write(redact(page.of_charts(charts, title)).encode())
            else:
                figure.draw(charts, file, suffix)
    except OSError as error:
        raise GymnastError(f"Cannot write '{path}': {error.strerror or error}.") from None


def suffix_of(path: Path) -> str:
    """What a file is to be; other kinds are refused before anything is read."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        *most, last = SUFFIXES
        raise UsageError(
            f"'{path}' is no chart file: charts are written as {', '.join(most)} or {last}, as the suffix says."
        )
    return suffix


def _groups(runs: Sequence[Run], *, each: bool) -> list[Group]:
    groups = group_runs(runs)
    if not each:
        return groups
    return [
        replace(group, label=f"{group.label} {run}, seed {seed}", runs=(run,), seeds=(seed,))
        for group in groups
        for run, seed in zip(group.runs, group.seeds)
    ]


def _by_name(series: Iterable[Series]) -> dict[str, Series]:
    return {one.name: one for one in series}


def _chart(
    name: str,
    groups: Sequence[Group],
    by_run: dict[str, dict[str, Series]],
    runs: Sequence[Run],
    axis: str,
    *,
    smooth: bool,
) -> Chart:
    """All groups' lines of one metric."""
    lines: list[Line] = []
    for colour, group in enumerate(groups):
        there = [one for run in group.runs if (one := by_run[run].get(name)) is not None and len(one.x)]
        lines += _lines(group, there, colour, smooth=smooth)
    threshold = _threshold(runs) if name in RETURNS else None
    metric = load_catalogue().get(name)
    return Chart(
        title=name,
        x_label=AXIS_LABELS[axis],
        y_label=metric.unit if metric is not None and metric.unit else "value",
        lines=tuple(lines),
        threshold=threshold,
        threshold_label="" if threshold is None else f"solved at {threshold:g}",
        note=BAND if any(line.low is not None for line in lines) else "",
    )


def _lines(group: Group, series: list[Series], colour: int, *, smooth: bool) -> list[Line]:
    """One line; of a single smoothed run its own points, too."""
    if not series:
        return []
    label = _label(group, len(series))
    lines = []
    if smooth:
        if len(series) == 1:
            lines.append(replace(_single(series[0], label, colour), faint=True))
        series = [replace(one, x=x, y=y) for one in series for x, y in [smoothed(one.x, one.y)]]
    if len(series) == 1:
        return [*lines, _single(series[0], label, colour)]
    curve = over_seeds(label, series, POINTS)
    assert curve is not None
    return [*lines, Line(label, curve.x, curve.iqm, curve.low, curve.high, colour=colour)]


def _single(series: Series, label: str, colour: int) -> Line:
    kept = thinned(series.x, series.y, POINTS)
    return Line(label, series.x[kept], series.y[kept], colour=colour)


def _label(group: Group, number: int) -> str:
    if number == 1:
        return group.label
    if len(set(group.seeds)) == number:
        return f"{group.label} ({number} seeds)"
    return f"{group.label} ({number} runs)"


def _threshold(runs: Sequence[Run]) -> float | None:
    """The score from which the one env of these runs counts as solved."""
    found = {threshold_of(run.config()) for run in runs}
    if len(found) == 1:
        return next(iter(found))
    return None


def _title(metric: str, runs: Sequence[Run]) -> str:
    envs = {str((run.config().get("env") or {}).get("id", "")) for run in runs}
    if len(envs) == 1:
        return f"{metric} · {next(iter(envs))}"
    return metric


def _nothing_to_draw(runs: Sequence[Run], asked: Sequence[str]) -> str:
    """Which names these runs have no numbers for, and some that they have."""
    logged = {name for run in runs if run.metrics_path.is_file() for name in metric_names(run)}
    if not logged:
        return f"Nothing has been logged yet by {', '.join(run.id for run in runs)}: there is nothing to draw."
    wanted = [one.name for one in Selection(asked).among(sorted(logged))]
    names = ", ".join(wanted or asked)
    return f"None of these runs has a value of {names}. They log, for example: {', '.join(_examples(logged))}."


def _examples(logged: Iterable[str]) -> list[str]:
    """A few names, the best known first."""
    known = load_catalogue().order(name for name in logged if "/" in name)
    return known[:5]
