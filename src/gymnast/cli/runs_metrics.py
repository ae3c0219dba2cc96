"""`gymnast runs metrics`: runs as one table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnast.amounts import count
from gymnast.cli.options import AsJson, References, RunsDir, echo, echo_json
from gymnast.runs.refs import resolve_runs
from gymnast.runs.store import runs_root
from gymnast.runs.tables import write_table


def metrics(
    references: References,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write: .parquet or .csv.", show_default=True)
    ] = Path("metrics.parquet"),
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Write the metrics of runs as one table for polars, pandas, DuckDB or a spreadsheet."""
    runs = resolve_runs(runs_root(runs_dir), references)
    rows, columns = write_table(runs, output)
    if as_json:
        echo_json({"path": str(output), "runs": [run.id for run in runs], "rows": rows, "columns": columns})
    else:
        echo(f"{output}: {count(len(runs), 'run')}, {count(rows, 'row')}, {count(columns, 'column')}")
