"""`gymnast metrics`: what is logged, and what it means."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, echo, echo_json
from gymnast.console import Console
from gymnast.metrics.alerts.alert import Rule
from gymnast.metrics.alerts.registry import all_rules
from gymnast.metrics.catalogue import Catalogue, Metric, load_catalogue

LIBRARIES = {"sb3": "Stable-Baselines3", "cleanrl": "CleanRL"}


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A metric, by gymnast's, Stable-Baselines3's or CleanRL's name; or train, rollout …"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain the logged metrics: meaning, unit, healthy range, names in other libraries, and alerts."""
    catalogue = load_catalogue()
    if name is None or name.rstrip("/") in {metric.namespace for metric in catalogue if metric.namespace}:
        chosen = [metric for metric in catalogue.listed if name is None or metric.namespace == name.rstrip("/")]
        if as_json:
            echo_json([_as_json(metric) for metric in chosen])
        else:
            _print_list(chosen)
        return
    metric = _find(catalogue, name)
    if as_json:
        echo_json(_as_json(metric))
        return
    for line in _explanation(metric, catalogue, name):
        echo(line)


def _find(catalogue: Catalogue, name: str) -> Metric:
    """By any name, also without its namespace where that is not ambiguous: `entropy`."""
    short = [metric for metric in catalogue if metric.label == name]
    if len(short) == 1:
        return short[0]
    return catalogue[catalogue.resolve_name(name)]


def _alerts(metric: Metric) -> list[Rule]:
    return [rule for rule in all_rules() if metric.name in rule.metrics]


def _as_json(metric: Metric) -> dict[str, Any]:
    aliases = {library: {"name": alias.name, "factor": alias.factor} for library, alias in metric.aliases.items()}
    return {
        "name": metric.name,
        "meaning": metric.meaning,
        "unit": metric.unit,
        "bounds": metric.bounds,
        "healthy": metric.healthy,
        "direction": metric.direction,
        "aliases": aliases,
        "alerts": [rule.id for rule in _alerts(metric)],
    }


def _print_list(metrics: list[Metric]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("metric", "unit", "meaning"):
        table.add_column(column, overflow="fold")
    for metric in metrics:
        table.add_row(*map(Text, (metric.name, metric.unit, metric.meaning)))
    Console(highlight=False).print(table)


def _explanation(metric: Metric, catalogue: Catalogue, asked: str) -> list[str]:
    better = {"up": ", higher is better", "down": ", lower is better", "none": ""}[metric.direction]
    lines = [metric.name, f"  {metric.meaning}", f"  unit      {metric.unit}{better}", f"  bounds    {_bounds(metric)}"]
    if metric.healthy:
        lines.append(f"  healthy   {metric.healthy}")
    for library, alias in metric.aliases.items():
        factor = ""
        if alias.factor != 1:
            factor = f", which is {alias.factor:g} × ours"
        mark = " (what you asked for)" if alias.name == asked else ""
        lines.append(f"  {LIBRARIES.get(library, library)}: {alias.name}{factor}{mark}")
    rules = _alerts(metric)
    if rules:
        lines.append("  alerts that read it:")
    lines += [f"    {rule.id} ({rule.severity}, threshold {rule.threshold:g}): {rule.means}" for rule in rules]
    return lines


def _bounds(metric: Metric) -> str:
    """The hard bounds in words."""
    if metric.bounds is None:
        return "none"
    low, high = metric.bounds
    if low is None:
        return f"at most {high:g}"
    if high is None:
        return f"at least {low:g}"
    return f"{low:g} to {high:g}"
