"""`gymnast runs compare | best`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.cli.options import AsJson, RunsDir, echo_json

if TYPE_CHECKING:
    from gymnast.runs.index import RunRow

NUMBERS = ("seed", "best", "env steps")


def compare(
    references: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Two or more runs.")],
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="A further metric, e.g. train/entropy; repeatable.")
    ] = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Runs side by side: settings that differ, results, and which is best (marked with *)."""
    from gymnast.errors import UsageError
    from gymnast.runs.compare import compare_runs
    from gymnast.runs.refs import resolve_runs
    from gymnast.runs.store import runs_root

    runs = resolve_runs(runs_root(runs_dir), references)
    if len(runs) < 2:
        raise UsageError("Name at least two different runs to compare, for example: gymnast runs compare @last @best")
    found = compare_runs(runs, metrics or [])
    if as_json:
        echo_json(dataclasses.asdict(found))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gymnast.config.leaves import text_of

    table = Table(box=None, pad_edge=False)
    for column in ("", *found.runs):
        table.add_column(column, overflow="fold")
    for key, values in found.settings.items():
        table.add_row(*map(Text, [key, *("–" if value is None else text_of(value) for value in values)]))
    if found.settings:
        table.add_row()
    for measure in found.results:
        cells = [_number(value) + ("*" if place in measure.best else "") for place, value in enumerate(measure.values)]
        table.add_row(Text(measure.name), *(Text(cell, style="bold" * cell.endswith("*")) for cell in cells))
    console = Console(highlight=False)
    console.print(table)
    if not found.same_env:
        console.print("The runs are of different environments: their returns cannot be compared.", style="yellow")
    elif found.protocol:
        console.print(f"Their returns are not measured alike: {', '.join(found.protocol)} differ.", style="yellow")


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def best(
    env: Annotated[str | None, typer.Argument(metavar="[ENV]", help="Rank the runs of this environment.")] = None,
    last: Annotated[int, typer.Option("--last", "-l", min=1, help="How many.")] = 10,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """The best run of each environment by evaluated return, or the ranking of one environment."""
    from gymnast.errors import UsageError, did_you_mean
    from gymnast.runs import index
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    known = [row for row in index.list_runs(root, sort="return") if row.best_return is not None]
    rows = [row for row in known if env is None or row.env.lower() == env.lower()]
    if env is None:
        rows = list({row.env: row for row in reversed(rows)}.values())[::-1]
    elif not rows:
        raise UsageError(
            f"No run of '{env}' has been evaluated in '{root}'.{did_you_mean(env, {row.env for row in known})}"
        )
    ranking = [_ranked(root, row, rows[0] if env else None) for row in rows[:last]]
    if as_json:
        echo_json(ranking)
        return
    if not rows:
        typer.echo(f"No evaluated runs in {root} yet. Start one: gymnast train CartPole-v1:ppo")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("env", "run", "config", "seed", "best", "env steps", "measured"):
        table.add_column(column, no_wrap=column != "measured", justify="right" if column in NUMBERS else "left")
    for one in ranking:
        cells = [one["env"], one["id"], one["config"], str(one["seed"]), f"{one['best_return']:.4g}"]
        table.add_row(*map(Text, [*cells, f"{one['env_steps']:,}", one["measured"]]))
    Console(highlight=False).print(table)


def _ranked(root: Path, row: RunRow, first: RunRow | None) -> dict[str, Any]:
    """A row of the ranking, with how the return was measured and in what that differs from the first of them."""
    from gymnast.errors import GymnastError
    from gymnast.runs.compare import protocol_differences
    from gymnast.runs.store import Run

    try:
        config = Run(root / row.id).config()
        top = Run(root / first.id).config() if first else config
    except GymnastError:
        config = top = {}
    evaluation: dict[str, Any] = section if isinstance(section := config.get("eval"), dict) else {}
    different = protocol_differences([top, config])
    measured = f"{evaluation.get('episodes', '?')} episodes" + (
        "" if evaluation.get("deterministic", True) else ", sampled"
    )
    if different:
        measured += f"; other {', '.join(different)}"
    return dataclasses.asdict(row) | {"measured": measured, "measured_differently": different}
