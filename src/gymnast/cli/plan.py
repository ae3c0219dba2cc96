"""`gymnast plan show | compare`: runs with several tasks."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, Overrides, References, RunsDir, echo_json
from gymnast.config.load import Resolved
from gymnast.config.tasks import task_envs
from gymnast.console import Console
from gymnast.metrics.verdict import shown
from gymnast.runs.stages import aligned, table
from gymnast.runs.store import Run
from gymnast.service.plain import plain
from gymnast.service.plans import PlanCard, StagedRun, StagesComparison, TaskCard, compare_stages, plan_card
from gymnast.service.settings import resolved_plan

BAR = 16
"""Width of the bar that shows a task's share."""
DONE, NOW, TO_COME, LEFT_OUT = "●", "◐", "○", "·"
KINDS = {
    "slot": "side by side, by env slot",
    "episode": "by turns, drawn for every episode",
    "stage": "one after the other",
}


def show(
    reference: Annotated[
        str, typer.Argument(metavar="ENV:VARIANT|RUN", help="A config with a plan, or a run: @last, an id.")
    ] = "@last",
    overrides: Overrides = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Draw the tasks of a plan: their shares or their order, what differs, when a stage ends, how far a run has come."""
    name, resolved, run = resolved_plan(reference, overrides or [], runs_dir)
    card = plan_card(name, resolved, run)
    if as_json:
        echo_json(plain(card))
        return
    _draw(card)
    _draw_spaces(resolved, run)


def _draw(card: PlanCard) -> None:
    console = Console(highlight=False, markup=False)
    what = "stages" if card.by == "stage" else "tasks"
    console.print(
        f"{card.name}: {len(card.tasks)} {what}, {KINDS[card.by]}, {card.env_steps:,} env steps", style="bold"
    )
    console.print()
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold", style="dim")
    for number, task in enumerate(card.tasks):
        if card.by == "stage":
            if number:
                grid.add_row("│", "", "", "")
            grid.add_row(_mark(card, task), Text(task.name), _stage_words(task), Text(task.changes))
        else:
            filled = max(1, round(BAR * task.share))
            solved = "" if task.threshold is None else f", solved at {task.threshold:g}"
            grid.add_row("█" * filled + "░" * (BAR - filled), Text(task.name), task.words + solved, Text(task.changes))
    console.print(grid)
    if card.by == "stage":
        console.print()
        console.print(
            f"The optimizer's moments {'stay' if card.optimizer == 'keep' else 'begin anew'} when a stage begins.",
            style="dim",
        )
    rows = table(card.records)
    if rows:
        console.print()
        for line in aligned(rows):
            console.print(line)


def _mark(card: PlanCard, task: TaskCard) -> str:
    if task.left_out:
        return LEFT_OUT
    if task.record is None:
        return TO_COME
    return DONE if task.record.ended is not None else NOW


def _stage_words(task: TaskCard) -> str:
    """When it ends, or what a run has made of it."""
    record = task.record
    if task.left_out:
        return "left out (plan.start)"
    if record is None:
        return task.words
    if record.ended is None:
        return f"{task.words}; since env step {record.began:,}"
    took = f"{record.ended - record.began:,} env steps"
    score = record.scores.get(task.name)
    ended = "" if score is None else f", {shown(score.mean, record.threshold)}"
    return f"solved after {took}{ended}" if record.reached is not None else f"not solved in {took}{ended}"


def _draw_spaces(resolved: Resolved, run: Run | None) -> None:
    """What all tasks show and take; an error where they do not agree. Of a run that is known."""
    if run is not None:
        return
    from gymnast.envs.tasks import THE_RUN, check_spaces, steppable  # Gymnasium

    config = resolved.config
    tasks = {name: steppable(env) for name, env in task_envs(config).items()}
    observation, action = check_spaces({THE_RUN: config.env, **tasks})
    console = Console(highlight=False, markup=False)
    console.print(f"All tasks observe {observation} and act in {action}.", style="dim")


def compare(runs: References, as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Compare env steps to threshold, stage by stage and in all, of runs with and without earlier stages (plan.start)."""
    found = compare_stages(runs, runs_dir)
    if as_json:
        medians = {start: {"median": one[0], "reached": one[1], "runs": one[2]} for start, one in found.medians.items()}
        echo_json({**plain(found), "medians": medians})
        return
    _print_comparison(found)


def _print_comparison(found: StagesComparison) -> None:
    console = Console(highlight=False, markup=False)
    steps = Table(box=None, pad_edge=False, title="Env steps to the threshold", title_justify="left")
    for column in ("run", "seed", "begins with"):
        steps.add_column(column, no_wrap=True, justify="right" if column == "seed" else "left")
    for stage in (*found.stages, "all stages", f"score on {found.stages[-1]}"):
        steps.add_column(stage, justify="right")
    for run in found.runs:
        cells = [_steps(run, stage) for stage in found.stages]
        total = f"{run.total:,}" if run.total is not None else f"> {run.budget:,}"
        score = "–" if run.score is None else shown(run.score)
        steps.add_row(run.run, str(run.seed), run.start, *cells, total, score)
    console.print(steps)
    console.print()
    for start, (middle, reached, runs) in found.medians.items():
        said = f"{middle:,.0f}" if middle is not None else "not reached"
        console.print(
            f"begins with {start}: median of all env steps {said}, {reached} of {runs} runs solved {found.stages[-1]}"
        )


def _steps(run: StagedRun, stage: str) -> str:
    if stage not in run.steps:
        return ""
    steps = run.steps[stage]
    return "not reached" if steps is None else f"{steps:,}"
