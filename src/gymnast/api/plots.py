"""Learning curves from Python: the chart of `gymnast plot`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gymnast.console import Console
from gymnast.metrics.charts import svg
from gymnast.metrics.charts.chart import Chart
from gymnast.metrics.charts.terminal import drawn
from gymnast.runs.store import Run
from gymnast.service import plots
from gymnast.service.metrics import DEFAULT_AXIS
from gymnast.service.runs import find_runs

WIDTH = 100
"""Columns of a printed plot."""


@dataclass(frozen=True)
class Plot:
    """Charts of runs: a notebook shows them, `print` draws them as text, `save` writes a file."""

    charts: tuple[Chart, ...]

    def save(self, path: str | Path) -> Path:
        """Write .svg, .html, .png or .pdf, as the suffix says; gives the path."""
        target = Path(path)
        plots.write_charts(self.charts, target)
        return target

    def _repr_svg_(self) -> str:
        return svg.document(self.charts)

    def __str__(self) -> str:
        """As `gymnast plot` draws it, without colours."""
        console = Console(width=WIDTH, color_system=None)
        with console.capture() as capture:
            for chart in self.charts:
                console.print(drawn(chart, WIDTH))
                console.print()
        return capture.get()


def plot(
    runs: str | Run | Sequence[str | Run] = "@last",
    metrics: str | Sequence[str] = (),
    *,
    axis: str = DEFAULT_AXIS,
    smooth: bool = False,
    each: bool = False,
    runs_dir: str | Path | None = None,
) -> Plot:
    """Learning curves of runs, by reference (`"@last"`, an id) or as `Run`; those that differ in seeds are one line with a band.

    `metrics` are names or patterns, by default the training return; `axis` is vec_steps, env_steps or time.
    """
    asked = [runs] if isinstance(runs, (str, Run)) else list(runs)
    root = Path(runs_dir) if runs_dir else None
    found = [run for one in asked for run in ([one] if isinstance(one, Run) else find_runs([one], root))]
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    return Plot(tuple(plots.plot(list(dict.fromkeys(found)), names, axis=axis, smooth=smooth, each=each)))
