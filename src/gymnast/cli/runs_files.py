"""`gymnast runs rm | prune | rebuild`: the commands that tidy the folder of runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gymnast.amounts import count, size
from gymnast.cli.options import AsJson, References, RunsDir, echo, echo_json
from gymnast.errors import UsageError
from gymnast.metrics.verdict import shown
from gymnast.runs import index
from gymnast.runs.housekeeping import Rules, Victim, refuse_live, remove, size_of, take, victims
from gymnast.runs.refs import resolve_runs
from gymnast.runs.store import runs_root
from gymnast.runs.when import parse_age

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def rm(references: References, yes: Yes = False, as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Delete runs, except those that are being trained."""
    runs = resolve_runs(runs_root(runs_dir), references, paths=False)  # only what lies in the folder of runs
    for run in runs:
        refuse_live(run)
    frees = {run.id: size_of(run.folder) for run in runs}
    if not as_json:
        for run in runs:
            echo(f"{run.id}  {run.config().get('name', '')}  {run.shown_state()}  {size(frees[run.id])}")
    if not _agreed(yes, f"Delete {count(len(runs), 'run')} ({size(sum(frees.values()))})?"):
        return
    remove(runs)
    if as_json:
        echo_json({"removed": [run.id for run in runs], "freed_bytes": sum(frees.values())})
    else:
        echo(f"Deleted {count(len(runs), 'run')}, {size(sum(frees.values()))} freed.")


def prune(
    keep_best: Annotated[
        int | None, typer.Option("--keep-best", min=0, help="Keep this many of the best runs of each config.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Only runs that were last active before that: 30d, 12h.")
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="Only runs in this state, e.g. failed; repeatable.")
    ] = None,
    env: Annotated[str | None, typer.Option("--env", help="Only this environment; * matches anything.")] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Keep the runs; delete their checkpoints except best and last.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Delete old runs by rule: a run is deleted if it matches all given rules.

    Runs that are being trained or tagged 'keep' always stay.
    """
    if keep_best is None and older_than is None and not status and env is None and not checkpoints:
        raise UsageError(
            "Say what to delete: --keep-best N, --older-than 30d, --status failed, --env ENV or --checkpoints."
        )
    age = parse_age(older_than, "--older-than") if older_than else None
    root = runs_root(runs_dir)
    found = victims(root, Rules(keep_best, age, tuple(status or ()), env), only_checkpoints=checkpoints)
    if not as_json:
        _preview(found, root)
    taken: list[Victim] = []
    what = "the checkpoints of " if checkpoints else ""
    question = f"Delete {what}{count(len(found), 'run')} ({size(sum(one.frees for one in found))})?"
    if found and not dry_run and _agreed(yes, question):
        taken = take(found, skipped=lambda sentence: echo(f"skipped: {sentence}", err=True))
        if not as_json:
            echo(f"Deleted {what}{count(len(taken), 'run')}, {size(sum(one.frees for one in taken))} freed.")
    if as_json:
        echo_json({"dry_run": dry_run, "would_remove": _as_json(found), "removed": _as_json(taken)})


def _preview(found: list[Victim], root: Path) -> None:
    for one in found:
        row = one.row
        score = "not evaluated"
        if row.best_return is not None:
            score = f"best {shown(row.best_return, row.threshold, digits=4)}"
        columns = [row.id, row.config, row.status, score, size(one.frees)]
        if one.checkpoints:
            columns.append(", ".join(one.checkpoints))
        echo("  ".join(columns))
    if not found:
        echo(f"Nothing in {root} matches these rules.")


def _as_json(found: list[Victim]) -> list[dict[str, Any]]:
    return [{"id": one.run.id, "bytes": one.frees, "checkpoints": list(one.checkpoints)} for one in found]


def _agreed(yes: bool, question: str) -> bool:
    """Ask the user. Without a terminal --yes is needed, because there is nobody to answer."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to answer in: add --yes to do it.")
    return typer.confirm(question, default=False)


def rebuild(as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Rebuild the index of runs from the run folders."""
    root = runs_root(runs_dir)
    if not root.is_dir():
        raise UsageError(
            f"There is no folder '{root}'. Name the one that holds the runs with --runs-dir or GYMNAST_HOME."
        )
    runs = index.rebuild(root)
    if as_json:
        echo_json({"runs": runs, "index": str(root / index.FILE)})
    else:
        echo(f"The index of {root} was rebuilt from {count(runs, 'run folder')}.")
