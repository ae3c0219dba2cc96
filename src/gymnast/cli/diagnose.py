"""`gymnast diagnose`: what is the matter with a run, and what to try next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, RunsDir, echo_json
from gymnast.config.leaves import text_of
from gymnast.console import Console
from gymnast.errors import UsageError
from gymnast.metrics.alerts.alert import Alert
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.diagnosis.diagnosis import Chart, Diagnosis
from gymnast.metrics.drawing import glyphs_for, sparkline
from gymnast.runs.compare import compare_runs, is_setting
from gymnast.runs.index import list_runs
from gymnast.runs.refs import resolve_run
from gymnast.runs.store import Run, runs_root
from gymnast.service.health import diagnosis_of

MOST_CAUSES = 3
LEAST_CONFIDENCE = 0.01
"""Causes that are less likely are only in the JSON."""
COLOURS = {"solved": "green", "learning": "cyan", "stuck": "yellow", "broken": "red", "unknown": "dim"}
SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "info": "dim"}


def diagnose_run(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    last: Annotated[
        int | None,
        typer.Option("--last", "-l", min=2, help="Compare with the newest runs of its env, N in all."),
    ] = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Find out what is wrong with a run: verdict, evidence, ranked causes, and a command to try next."""
    root = runs_root(runs_dir)
    run = resolve_run(root, reference)
    others = []
    if last is not None:
        others = _others(root, run, last - 1)
    page = diagnosis_of(run, others)
    if last is None:
        if as_json:
            echo_json(page.as_json())
            return
        _print_page(Console(highlight=False), page, run.config())
        return
    pages = [page, *(diagnosis_of(other, []) for other in others)]
    best = max(pages, key=lambda one: -1e9 if one.score is None else one.score)
    start = diagnosis_of(Run(root / best.run), [one for one in [run, *others] if one.id != best.run])
    if as_json:
        experiment = start.as_json()["experiment"]
        echo_json({"runs": [one.as_json() for one in pages], "best": best.run, "experiment": experiment})
        return
    _print_comparison(Console(highlight=False), root, pages, start)


def _others(root: Path, run: Run, number: int) -> list[Run]:
    """The newest other runs of the same env."""
    env = (run.config().get("env") or {}).get("id")
    found = [Run(root / row.id) for row in list_runs(root) if row.env == env and row.id != run.id]
    if not found:
        raise UsageError(f"There is no other run of {env} in '{root}' to compare {run.id} with.")
    return found[:number]


# --- one run --------------------------------------------------------------------------------------------------------


def _print_page(console: Console, page: Diagnosis, config: dict[str, Any]) -> None:
    console.print(f"{page.run}  {config.get('name', '')}", style="bold")
    console.print(Text.assemble((page.health.upper(), f"bold {COLOURS[page.health]}"), f"  {page.verdict}"))
    _print_charts(console, page.charts)
    if page.alerts:
        console.print("\nWhat was seen", style="bold")
    for alert in page.alerts:
        _print_alert(console, alert, page.reference)
    if page.causes:
        console.print("\nLikely causes", style="bold")
    named = [one for one in page.causes[:MOST_CAUSES] if one is page.causes[0] or one.confidence >= LEAST_CONFIDENCE]
    for number, one in enumerate(named, start=1):
        console.print(
            f"{number}. {one.cause.title} ({_percent(one.confidence)})", style="bold" if number == 1 else None
        )
        _print_below(console, "   ", one.cause.why)
        for evidence in one.evidence:
            sign = "+" if evidence.weight > 0 else "-"
            _print_below(console, f"   {sign} ", evidence.says, style="dim")
    _print_next(console, page)


def _print_below(console: Console, start: str, text: str, *, style: str | None = None) -> None:
    """A paragraph under a heading: lines that do not fit go on below the first word, not below its sign."""
    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True, width=len(start))
    grid.add_column()
    grid.add_row(Text(start, style=style or ""), Text(text, style=style or ""))
    console.print(grid)


def _percent(share: float) -> str:
    """A share in percent; nothing is certain."""
    if share > 0.99:
        return ">99%"
    return f"{share:.0%}"


def _print_charts(console: Console, charts: Sequence[Chart]) -> None:
    if not charts:
        return
    catalogue, blocks = load_catalogue(), glyphs_for(console).blocks
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(no_wrap=True)
    for chart in charts:
        ends = f"{catalogue.format(chart.metric, chart.first)} to {catalogue.format(chart.metric, chart.last)}"
        table.add_row(Text(chart.metric), Text(sparkline(chart.points, blocks)), Text(ends))
    console.print()
    console.print(table)


def _print_alert(console: Console, alert: Alert, run: str) -> None:
    rows = "1 row"
    if alert.count != 1:
        rows = f"{alert.count:,} rows"
    if alert.count > 1:
        steps = f"{alert.first_step:,} to {alert.last_step:,}"
    else:
        steps = f"{alert.first_step:,}"
    head = (f"{alert.severity} {alert.id}", SEVERITY_COLOURS[alert.severity])
    console.print(Text.assemble(head, f" ({rows}, env steps {steps})"))
    _print_below(console, "  ", alert.message)
    if alert.severity != "info":
        _print_below(console, "  ", alert.means, style="dim")
        for advice in alert.advice:
            _print_below(console, "  · ", advice)
    _print_below(console, "  ", f"look at the update: {alert.rewind(run)}", style="dim")


def _print_next(console: Console, page: Diagnosis) -> None:
    if page.health == "solved":
        console.print("\nNothing to change. Publish it, or try another seed before you trust it.")
        return
    console.print("\nNext experiment", style="bold")
    if page.experiment is None:
        console.print("No setting stands out. Train longer, with other seeds, or compare: gymnast diagnose --last 5")
        return
    console.print(page.experiment.expects)
    console.print(page.experiment.command, style="bold", soft_wrap=True)


# --- several runs ---------------------------------------------------------------------------------------------------


def _print_comparison(console: Console, root: Path, pages: Sequence[Diagnosis], start: Diagnosis) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("run", "health", "score", "likeliest cause", "what is different"):
        table.add_column(column, overflow="fold")
    settings = compare_runs([Run(root / page.run) for page in pages]).settings
    for place, page in enumerate(pages):
        differs = [f"{key}={text_of(values[place])}" for key, values in settings.items() if is_setting(key)]
        score = "–" if page.score is None else f"{page.score:.0%}"
        cause = "–"
        if page.causes:
            cause = page.causes[0].cause.title
        mark = "*" if page.run == start.run else ""
        table.add_row(
            *map(Text, (f"{page.run}{mark}", page.health, score, cause, ", ".join(differs) or "the seed alone"))
        )
    console.print(table)
    console.print(
        f"* {start.run} is the best of them; the next experiment starts from it, and repeats none of the others."
    )
    _print_next(console, start)
