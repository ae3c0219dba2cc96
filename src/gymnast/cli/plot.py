"""`gymnast plot`: learning curves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.charts import show_charts
from gymnast.cli.options import RunsDir
from gymnast.service.metrics import DEFAULT_AXIS
from gymnast.service.plots import plot, suffix_of
from gymnast.service.runs import find_runs

Axis = Annotated[str, typer.Option("--axis", "-x", help="X-axis: vec_steps, env_steps or time.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write: .png, .pdf, .svg or .html (default: draw in the terminal)."),
]


def plot_runs(
    references: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="@last (the default), an id, @best:ENV …")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="A metric, a pattern ('train/*') or an expression ('re:loss$'); repeatable (default: rollout/return_mean).",
        ),
    ] = None,
    axis: Axis = DEFAULT_AXIS,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Smooth the curves; single runs also keep the raw curve.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Draw one line per run, even if runs differ only in their seed.")
    ] = False,
    output: Output = None,
    runs_dir: RunsDir = None,
) -> None:
    """Draw learning curves with bands over seeds, in the terminal or as PNG, PDF, SVG or HTML."""
    if output is not None:
        suffix_of(output)
    runs = find_runs(references or ["@last"], runs_dir)
    show_charts(plot(runs, metrics or [], axis=axis, smooth=smooth, each=each), output)
