"""`gymnast report`: the report of a run, made again."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnast.cli.options import RunsDir, echo
from gymnast.runs.report.write import write_report
from gymnast.service.runs import find_run


def report(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    runs_dir: RunsDir = None,
) -> None:
    """Write a run's report.md and report.html again, from what its folder contains now."""
    for path in write_report(find_run(reference, runs_dir)):
        echo(str(path))
