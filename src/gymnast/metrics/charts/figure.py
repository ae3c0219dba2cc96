"""Charts as PNG or PDF, drawn by matplotlib (the extra `plots`), which is imported only here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from gymnast.errors import MissingPackageError
from gymnast.metrics.charts.chart import PALETTE, Chart

WIDTH, HEIGHT = 5.6, 3.5
"""Inches of one chart."""
DPI = 200


def draw(charts: Sequence[Chart], file: BinaryIO, suffix: str, *, columns: int = 2) -> None:
    """All charts in one figure."""
    figure_type = _figure()
    columns = max(1, min(columns, len(charts)))
    rows = math.ceil(len(charts) / columns)
    figure = figure_type(figsize=(WIDTH * columns, HEIGHT * rows), layout="constrained")
    for number, chart in enumerate(charts):
        _draw(figure.add_subplot(rows, columns, number + 1), chart)
    figure.savefig(file, format=suffix.removeprefix("."), dpi=DPI)


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError("Drawing a chart as PNG or PDF", "plots") from None
    return Figure


def _draw(axes: Any, chart: Chart) -> None:
    from matplotlib.ticker import FuncFormatter

    if chart.threshold is not None:
        axes.axhline(chart.threshold, color="0.35", linewidth=1.0, linestyle=(0, (5, 4)), label=chart.threshold_label)
    for line in chart.lines:
        colour = PALETTE[line.colour % len(PALETTE)]
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
        if line.faint:
            axes.plot(line.x, line.y, color=colour, linewidth=0.8, alpha=0.3)
            continue
        marker = ""
        if np.isfinite(line.y).sum() == 1:
            marker = "o"
        axes.plot(line.x, line.y, color=colour, linewidth=1.6, label=line.label, marker=marker, markersize=4)
    axes.set_title(chart.title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel(chart.x_label, fontsize=9, loc="right")
    axes.set_ylabel(chart.y_label, fontsize=9)
    axes.set_xlim(*_widened(chart.x_range()))
    axes.set_ylim(*chart.y_range())
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if chart.note:
        axes.plot([], [], " ", label=chart.note)
    # Below the curves, where it hides none of them.
    axes.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(-0.03, -0.13), borderaxespad=0)


def _widened(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if high > low:
        return (low, high)
    return (low - 0.5, high + 0.5)


def _short(value: float, _place: int) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
