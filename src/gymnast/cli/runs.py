"""`gymnast runs list | show`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from gymnast.cli.options import AsJson, RunsDir, echo_json

app = typer.Typer(help="What was trained here.", no_args_is_help=True)


@app.command("list")
def list_runs(
    last: Annotated[int, typer.Option("--last", "-l", min=1, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Runs, newest first."""
    from gymnast.runs import index
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    rows = index.list_runs(root)[:last] if root.is_dir() else []
    if as_json:
        echo_json([dataclasses.asdict(row) for row in rows])
        return
    if not rows:
        typer.echo(f"No runs in {root} yet. Start one: gymnast train CartPole-v1:ppo")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("run", "config", "seed", "status", "env steps", "eval", "time", "started"):
        table.add_column(
            column, no_wrap=True, justify="right" if column in ("seed", "env steps", "eval", "time") else "left"
        )
    for row in rows:
        score = "" if row.last_return is None else f"{row.last_return:.4g}"
        status = "solved" if row.solved and row.status == "finished" else row.status
        started = row.created[5:16].replace("T", " ")
        table.add_row(
            row.id, row.config, str(row.seed), status, f"{row.env_steps:,}", score, f"{row.wall_seconds:.0f} s", started
        )
    Console().print(table)


@app.command("show")
def show(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """One run: status, result, checkpoints, last metrics."""
    from gymnast.metrics.catalogue import load_catalogue
    from gymnast.metrics.sinks.jsonl import read_rows
    from gymnast.runs import checkpoint
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    run = resolve_run(runs_root(runs_dir), reference)
    status, rows = run.status(), read_rows(run.metrics_path)
    names = [f"step={step}" for step in checkpoint.steps(run.folder)]
    best, newest = (checkpoint.read_pointer(run.folder, pointer) for pointer in ("best", "last"))
    last: dict[str, Any] = rows[-1] if rows else {}
    if as_json:
        state = dataclasses.asdict(status) | {"state": run.shown_state()}
        echo_json(
            {
                "id": run.id,
                "folder": str(run.folder),
                "status": state,
                "checkpoints": names,
                "best": best,
                "last": newest,
                "metrics": last,
            }
        )
        return
    from rich.console import Console
    from rich.table import Table

    console, catalogue = Console(highlight=False), load_catalogue()
    console.print(
        f"[bold]{run.id}[/bold]  {run.config().get('name', '')}  {run.shown_state()}"
        + (f": {status.stop_reason}" if status.stop_reason else "")
    )
    console.print(
        f"{status.env_steps:,} env steps in {status.wall_seconds:.1f} s, attempt {status.attempt}, {run.folder}"
    )
    marks = {best: " (best)", newest: " (last)"}
    both = " (best, last)" if best == newest else None
    console.print(
        "checkpoints: " + (", ".join(name + (both or marks[name] if name in marks else "") for name in names) or "none")
    )
    table = Table(box=None, pad_edge=False)
    for column in ("metric", "value", "meaning"):
        table.add_column(column, overflow="fold", style="dim" if column == "meaning" else None)
    values = _latest(rows)
    for name in catalogue.order(values):
        metric = catalogue.get(name)
        table.add_row(name, catalogue.format(name, values[name]), metric.meaning if metric else "")
    console.print(table)


def _latest(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The last known value of each metric (evaluations are not in every row)."""
    values: dict[str, float] = {}
    for row in rows[-2000:]:
        values |= {
            name: value
            for name, value in row.items()
            if isinstance(value, (int, float)) and name not in ("attempt", "resumed_from")
        }
    return values
