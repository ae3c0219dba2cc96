"""`gymnast runs compare | best`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.charts import show_charts
from gymnast.cli.options import AsJson, RunsDir, echo, echo_json
from gymnast.cli.plot import Axis, Output
from gymnast.config.leaves import text_of
from gymnast.console import Console
from gymnast.errors import UsageError
from gymnast.metrics.charts.chart import Chart
from gymnast.metrics.verdict import shown
from gymnast.runs.store import Run, runs_root
from gymnast.service.compare import Group, SideBySide, group_runs, side_by_side
from gymnast.service.metrics import DEFAULT_AXIS
from gymnast.service.plain import plain
from gymnast.service.plots import DEFAULT_METRICS, NothingToDrawError, plot, suffix_of, write_charts
from gymnast.service.runs import best_runs, find_runs
from gymnast.service.statistics import Score

NUMBERS = ("seed", "best", "vec steps", "env steps")
SCORES = ("evaluation", "best evaluation")
"""Results that no rounding may lift to the threshold."""


def compare(
    references: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Two or more runs.")],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Another metric, e.g. train/entropy; repeatable.")
    ] = None,
    output: Output = None,
    axis: Axis = DEFAULT_AXIS,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Compare runs: settings that differ, results (the best marked with *), seeds as groups, and learning curves."""
    if output is not None:
        suffix_of(output)
    runs = find_runs(references, runs_dir)
    if len(runs) < 2:
        raise UsageError("Name at least two different runs to compare, for example: gymnast runs compare @last @best")
    found = side_by_side(runs, metrics or [])
    groups = group_runs(runs)
    charts = _charts(runs, metrics or [], axis)
    if output is not None and charts:
        write_charts(charts, output)
    if as_json:
        echo_json(plain(found.comparison) | {"groups": plain(groups)})
        return
    console = Console(highlight=False)
    console.print(_table(found))
    if found.warning is not None:
        console.print(found.warning, style="yellow")
    if any(len(group.runs) > 1 for group in groups):
        console.print()
        console.print(_groups(groups, found.threshold))
    console.print()
    if output is None:
        show_charts(charts, None)
    elif charts:
        echo(str(output))


def _charts(runs: Sequence[Run], metrics: Sequence[str], axis: str) -> list[Chart]:
    """Of the return and of the metrics that were asked for, as far as these runs have logged them."""
    charts = []
    for name in dict.fromkeys((*DEFAULT_METRICS, *metrics)):
        with contextlib.suppress(NothingToDrawError):
            charts += plot(runs, [name], axis=axis)
    return charts


def _groups(groups: Sequence[Group], threshold: float | None) -> Table:
    """Seeds as one result: interquartile means with their 95 % intervals."""
    table = Table(box=None, pad_edge=False)
    for column in ("group", "seeds", "best, IQM [95 %]", "last, IQM [95 %]"):
        table.add_column(column, overflow="fold", justify="right" if column == "seeds" else "left")
    for group in groups:
        scores = (_score(score, threshold) for score in (group.best, group.last))
        table.add_row(Text(group.label), Text(str(len(group.runs))), *(Text(score) for score in scores))
    return table


def _score(score: Score | None, threshold: float | None) -> str:
    """`487.3 [470.1, 500.0]`; a single run has no interval."""
    if score is None:
        return "–"
    middle = shown(score.iqm, threshold, digits=4)
    if len(score.values) == 1:
        return middle
    return f"{middle} [{shown(score.low, threshold, digits=4)}, {shown(score.high, threshold, digits=4)}]"


def _table(found: SideBySide) -> Table:
    comparison = found.comparison
    table = Table(box=None, pad_edge=False)
    for column in ("", *comparison.runs):
        table.add_column(column, overflow="fold")
    for key, values in comparison.settings.items():
        table.add_row(Text(key), *(Text(_setting(value)) for value in values))
    if comparison.settings:
        table.add_row()
    for measure in comparison.results:
        threshold = found.threshold if measure.name in SCORES else None
        cells = [Text(_number(value, threshold)) for value in measure.values]
        for place in measure.best:
            cells[place] = Text(f"{cells[place]}*", style="bold")
        table.add_row(Text(measure.name), *cells)
    return table


def _setting(value: Any) -> str:
    if value is None:
        return "–"
    return text_of(value)


def _number(value: Any, threshold: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, float) and threshold is not None:
        return shown(value, threshold, digits=4)
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.4g}"
    if isinstance(value, float):
        return f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def best(
    env: Annotated[str | None, typer.Argument(metavar="[ENV]", help="Rank the runs of this environment.")] = None,
    last: Annotated[int, typer.Option("--last", "-l", min=1, help="How many runs to show.")] = 10,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Show the best run of each environment, or the ranking of one environment."""
    ranking = best_runs(runs_dir, env, limit=last)
    if as_json:
        echo_json(plain(ranking))
        return
    if not ranking:
        echo(f"No evaluated runs in {runs_root(runs_dir)} yet. Start one: gymnast train CartPole-v1:ppo")
        return
    table = Table(box=None, pad_edge=False)
    columns = ["env", "run", "config", "seed", "best", "vec steps", "env steps", "measured"]
    if env is not None:  # all rows are of it
        columns.remove("env")
    for column in columns:
        table.add_column(column, no_wrap=column != "measured", justify="right" if column in NUMBERS else "left")
    for row in ranking:
        cells = {
            "env": row.env,
            "run": row.id,
            "config": row.config,
            "seed": str(row.seed),
            "best": "" if row.best_return is None else shown(row.best_return, row.threshold, digits=4),
            "vec steps": f"{row.vec_steps:,}",
            "env steps": f"{row.env_steps:,}",
            "measured": row.measured,
        }
        table.add_row(*(Text(cells[column]) for column in columns))
    Console(highlight=False).print(table)
