"""How commands show charts: in the terminal, or in the file that `-o` names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gymnast.cli.options import echo
from gymnast.console import Console
from gymnast.metrics.charts.chart import Chart
from gymnast.metrics.charts.terminal import HEIGHT, drawn
from gymnast.metrics.drawing import UNICODE, glyphs_for
from gymnast.service.plots import write_charts

MOST_COLUMNS = 110
"""A wider chart does not read better."""


def show_charts(charts: Sequence[Chart], output: Path | None) -> None:
    """Write the file, or draw one chart below the other."""
    if output is not None:
        write_charts(charts, output)
        echo(f"{output}  ({len(charts)} chart{'s' * (len(charts) != 1)})")
        return
    console = Console(highlight=False)
    utf8 = glyphs_for(console) is UNICODE
    for chart in charts:
        console.print(drawn(chart, min(console.width, MOST_COLUMNS), HEIGHT, utf8=utf8))
        console.print()
