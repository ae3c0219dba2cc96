"""`gymnast runs list`; the other commands lie in `runs_*`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, RunsDir, echo, echo_json
from gymnast.console import Console
from gymnast.metrics.verdict import shown
from gymnast.runs.index import RunRow
from gymnast.runs.store import runs_root
from gymnast.service import runs as service
from gymnast.service.plain import plain
from gymnast.service.runs import ListedRun, RunFilter

NUMBERS = ("seed", "vec steps", "env steps", "best", "last", "time", "efficiency", "solved after", "seconds to solved")
YIELDING = ("config", "tags")
"""Columns that wrap in a narrow terminal; ids and numbers stay whole."""
SORTED_BY = {
    "efficiency": "efficiency",
    "steps-to-solved": "solved after",
    "seconds-to-solved": "seconds to solved",
    "time": "time",
    "last-return": "last",
}
"""The column by which a listing is sorted stays."""
ON_REQUEST = ("solved after", "seconds to solved")
"""Columns that are shown where a listing is sorted by them."""
FIRST_TO_GO = ("started", "efficiency", "time", "last")
"""Columns that a narrow terminal leaves out, one after the other."""
GAP = 2
"""Spaces between two columns."""
TAGS_AT_LEAST = 12


def list_runs(
    env: Annotated[str | None, typer.Option("--env", help="Only this environment; * matches anything.")] = None,
    algo: Annotated[str | None, typer.Option("--algo", help="Only this algorithm.")] = None,
    config: Annotated[str | None, typer.Option("--config", help="Only this config, e.g. 'CartPole-v1:*'.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="running, finished, interrupted, failed or crashed.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only runs with this tag.")] = None,
    solved: Annotated[bool | None, typer.Option("--solved/--not-solved", help="Only (un)solved runs.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Created since: 7d, 12h, 2026-11-16.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Created until: 7d, 12h, 2026-11-16.")] = None,
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            help="created, return, last-return, efficiency, steps-to-solved, seconds-to-solved, steps, time, env or config.",
        ),
    ] = "created",
    last: Annotated[int, typer.Option("--last", "-l", min=1, help="How many runs to show.")] = 20,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """List runs, newest first."""
    wanted = RunFilter(
        env=env, algo=algo, config=config, status=status, tag=tag, solved=solved, since=since, until=until
    )
    rows = service.list_runs(runs_dir, wanted, sort=sort, limit=last)
    if as_json:
        echo_json(plain(rows))
    elif rows:
        _print_rows(rows, sort)
    elif wanted != RunFilter():
        echo(f"No run in {runs_root(runs_dir)} fits.")
    else:
        echo(f"No runs in {runs_root(runs_dir)} yet. Start one: gymnast train CartPole-v1:ppo")


def _print_rows(rows: list[ListedRun], sort: str) -> None:
    console, table = Console(), Table(box=None, pad_edge=False)
    cells = [_cells(row) for row in rows]
    columns = _fitting(cells, console.width, kept=SORTED_BY.get(sort))
    for column in columns:
        justify: JustifyMethod = "right" if column in NUMBERS else "left"
        table.add_column(column, no_wrap=column not in YIELDING, overflow="fold", justify=justify)
    for row in cells:
        table.add_row(*(Text(row[column]) for column in columns))
    console.print(table)


def _cells(row: ListedRun) -> dict[str, str]:
    return {
        "run": row.id,
        "config": row.config,
        "seed": str(row.seed),
        "status": _status(row),
        "vec steps": f"{row.vec_steps:,}",
        "env steps": f"{row.env_steps:,}",
        "best": _score(row.best_return, row.threshold),
        "last": _score(row.last_return, row.threshold),
        "efficiency": "" if row.efficiency is None else f"{row.efficiency:.2f}",
        "solved after": "" if row.vec_steps_to_solved is None else f"{row.vec_steps_to_solved:,}",
        "seconds to solved": "" if row.seconds_to_solved is None else f"{row.seconds_to_solved:.1f}",
        "time": f"{row.wall_seconds:.0f} s",
        "started": row.created[5:16].replace("T", " "),
        "tags": " ".join(row.tags),
    }


def _fitting(rows: list[dict[str, str]], width: int, kept: str | None) -> list[str]:
    """The columns that are shown; names of configs are broken only where leaving columns out is not enough."""
    widths = {column: max(len(column), *(len(row[column]) for row in rows)) for column in rows[0]}
    widths["tags"] = min(widths["tags"], TAGS_AT_LEAST)
    if not any(row["tags"] for row in rows):
        del widths["tags"]
    if not any(row["efficiency"] for row in rows) and kept != "efficiency":
        del widths["efficiency"]
    for column in {*ON_REQUEST} - {kept}:
        del widths[column]
    for column in FIRST_TO_GO:
        if sum(widths.values()) + GAP * (len(widths) - 1) <= width:
            break
        if column != kept:
            widths.pop(column, None)
    return list(widths)


def _status(row: RunRow) -> str:
    """`solved` says more than `finished`."""
    if row.solved and row.status == "finished":
        return "solved"
    return row.status


def _score(score: float | None, threshold: float | None) -> str:
    if score is None:
        return ""
    return shown(score, threshold, digits=4)
