"""`gymnast runs`: the group and `list`; the other commands lie in `runs_*`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.cli import runs_compare, runs_files, runs_labels, runs_show
from gymnast.cli.options import AsJson, RunsDir, echo_json

if TYPE_CHECKING:
    from rich.console import JustifyMethod

    from gymnast.runs.index import RunRow

app = typer.Typer(help="What was trained here.", no_args_is_help=True)
app.command("show")(runs_show.show)
app.command("compare")(runs_compare.compare)
app.command("best")(runs_compare.best)
app.command("tag")(runs_labels.tag)
app.command("note")(runs_labels.note)
app.command("rm")(runs_files.rm)
app.command("prune")(runs_files.prune)
app.command("export")(runs_files.export)
app.command("import")(runs_files.import_)
app.command("rebuild")(runs_files.rebuild)

NUMBERS = ("seed", "env steps", "eval", "time")
YIELDING = ("config", "tags")
"""Columns that wrap in a narrow terminal; ids and numbers stay whole."""


@app.command("list")
def list_runs(
    env: Annotated[str | None, typer.Option("--env", help="Only this environment; * stands for anything.")] = None,
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
        str, typer.Option("--sort", help="created, return, last-return, steps, time, env or config.")
    ] = "created",
    last: Annotated[int, typer.Option("--last", "-l", min=1, help="How many.")] = 20,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Runs, newest first."""
    from gymnast.runs import index
    from gymnast.runs.labels import read_note
    from gymnast.runs.store import Run, runs_root
    from gymnast.runs.when import parse_moment

    root = runs_root(runs_dir)
    filters: dict[str, Any] = {
        "env": env,
        "algo": algo,
        "config": config,
        "status": status,
        "tag": tag,
        "solved": solved,
    }
    filters["since"] = parse_moment(since, "--since") if since else None
    filters["until"] = parse_moment(until, "--until", end=True) if until else None
    rows = index.list_runs(root, **filters, sort=sort, limit=last)
    if as_json:
        echo_json([dataclasses.asdict(row) | {"note": read_note(Run(root / row.id))} for row in rows])
        return
    if not rows and any(value is not None for value in filters.values()):
        typer.echo(f"No run in {root} fits.")
    elif not rows:
        typer.echo(f"No runs in {root} yet. Start one: gymnast train CartPole-v1:ppo")
    else:
        _print_rows(rows)


def _print_rows(rows: list[RunRow]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = ["run", "config", "seed", "status", "env steps", "eval", "time", "started"]
    console, table = Console(), Table(box=None, pad_edge=False)
    tagged = any(row.tags for row in rows)
    if console.width < (100 if tagged else 80):
        columns.remove("started")
    columns += ["tags"] if tagged else []
    for column in columns:
        justify: JustifyMethod = "right" if column in NUMBERS else "left"
        table.add_column(column, no_wrap=column not in YIELDING, overflow="fold", justify=justify)
    for row in rows:
        cells = {
            "run": row.id,
            "config": row.config,
            "seed": str(row.seed),
            "status": "solved" if row.solved and row.status == "finished" else row.status,
            "env steps": f"{row.env_steps:,}",
            "eval": "" if row.last_return is None else f"{row.last_return:.4g}",
            "time": f"{row.wall_seconds:.0f} s",
            "started": row.created[5:16].replace("T", " "),
            "tags": " ".join(row.tags),
        }
        table.add_row(*(Text(cells[column]) for column in columns))
    console.print(table)
