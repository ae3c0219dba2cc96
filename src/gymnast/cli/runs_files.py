"""`gymnast runs rm | prune | export | import | rebuild`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.cli.options import AsJson, RunsDir, echo_json

if TYPE_CHECKING:
    from gymnast.runs.housekeeping import Victim

References = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="@last, an id, @best:ENV …", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def rm(references: References, yes: Yes = False, as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Delete runs. A run that is being trained is refused."""
    from gymnast.runs.housekeeping import refuse_live, remove, size_of
    from gymnast.runs.refs import resolve_runs
    from gymnast.runs.store import runs_root

    runs = resolve_runs(runs_root(runs_dir), references, paths=False)  # only what lies in the folder of runs
    for run in runs:
        refuse_live(run)
    frees = {run.id: size_of(run.folder) for run in runs}
    if not as_json:
        for run in runs:
            typer.echo(f"{run.id}  {run.config().get('name', '')}  {run.shown_state()}  {_size(frees[run.id])}")
    if not _agreed(yes, f"Delete {_count(len(runs), 'run')} ({_size(sum(frees.values()))})?"):
        return
    remove(runs)
    if as_json:
        echo_json({"removed": [run.id for run in runs], "freed_bytes": sum(frees.values())})
    else:
        typer.echo(f"Deleted {_count(len(runs), 'run')}, {_size(sum(frees.values()))} are free again.")


def prune(
    keep_best: Annotated[
        int | None, typer.Option("--keep-best", min=0, help="Keep the best so many runs of each config.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Only runs whose last sign of life is older: 30d, 12h.")
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="Only runs in this state, e.g. failed; repeatable.")
    ] = None,
    env: Annotated[str | None, typer.Option("--env", help="Only this environment; * stands for anything.")] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Keep the runs; remove their checkpoints but best and last.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Delete old runs by rule: a run goes when all given rules agree.

    Runs that are being trained or tagged 'keep' always stay.
    """
    from gymnast.errors import UsageError
    from gymnast.runs.housekeeping import Rules, take, victims
    from gymnast.runs.store import runs_root
    from gymnast.runs.when import parse_age

    if keep_best is None and older_than is None and not status and env is None and not checkpoints:
        raise UsageError(
            "Say what may go: --keep-best N, --older-than 30d, --status failed, --env ENV or --checkpoints."
        )
    age = parse_age(older_than, "--older-than") if older_than else None
    root = runs_root(runs_dir)
    found = victims(root, Rules(keep_best, age, tuple(status or ()), env), only_checkpoints=checkpoints)
    if not as_json:
        _preview(found, root)
    taken: list[Victim] = []
    what = f"the checkpoints of {_count(len(found), 'run')}" if checkpoints else _count(len(found), "run")
    if found and not dry_run and _agreed(yes, f"Delete {what} ({_size(sum(one.frees for one in found))})?"):
        taken = take(found, skipped=lambda sentence: typer.echo(f"skipped: {sentence}", err=True))
        if not as_json:
            what = f"the checkpoints of {_count(len(taken), 'run')}" if checkpoints else _count(len(taken), "run")
            typer.echo(f"Deleted {what}, {_size(sum(one.frees for one in taken))} are free again.")
    if as_json:
        echo_json({"dry_run": dry_run, "would_remove": _as_json(found), "removed": _as_json(taken)})


def _preview(found: list[Victim], root: Path) -> None:
    for one in found:
        row = one.row
        score = "not evaluated" if row.best_return is None else f"best {row.best_return:.4g}"
        what = f"  {', '.join(one.checkpoints)}" if one.checkpoints else ""
        typer.echo(f"{row.id}  {row.config}  {row.status}  {score}  {_size(one.frees)}{what}")
    if not found:
        typer.echo(f"Nothing in {root} fits these rules.")


def _as_json(found: list[Victim]) -> list[dict[str, Any]]:
    return [{"id": one.run.id, "bytes": one.frees, "checkpoints": list(one.checkpoints)} for one in found]


def _agreed(yes: bool, question: str) -> bool:
    """Whether the user wants it; a program must say --yes, because nobody would answer."""
    if yes:
        return True
    if not sys.stdin.isatty():
        from gymnast.errors import UsageError

        raise UsageError(f"{question} Nobody is here to answer: add --yes to do it.")
    return typer.confirm(question, default=False)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if unit != "B" else f"{size} B"
        size /= 1024
    return f"{size:.3g} GiB"


# --- archives -----------------------------------------------------------------------------------------------


def export(
    references: References,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: RUN.zip here).")
    ] = None,
    all_checkpoints: Annotated[
        bool, typer.Option("--all-checkpoints", help="Every checkpoint, not only best and last.")
    ] = False,
    videos: Annotated[bool, typer.Option("--videos", help="Videos, too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Pack runs into one file: config, metrics, status, log, tags, note, checkpoints. Secrets are taken out."""
    from gymnast.runs.archive import export_runs
    from gymnast.runs.refs import resolve_runs
    from gymnast.runs.store import runs_root

    runs = resolve_runs(runs_root(runs_dir), references)
    path = output or Path(f"{runs[0].id}.zip" if len(runs) == 1 else "runs.zip")
    packed = export_runs(runs, path, all_checkpoints=all_checkpoints, videos=videos, replace=force)
    if as_json:
        echo_json({"file": str(packed.path), "runs": packed.runs, "files": packed.files, "bytes": packed.size})
        return
    names = ", ".join(packed.runs)
    typer.echo(
        f"{packed.path}: {_count(len(packed.runs), 'run')} ({names}), {packed.files} files, {_size(packed.size)}"
    )
    typer.echo(f"Elsewhere: gymnast runs import {packed.path.name}")


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="An archive of 'gymnast runs export'.")],
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Unpack the runs of an archive, after checking every file of it; all of them or none."""
    from gymnast.runs.store import runs_root
    from gymnast.runs.unpack import import_runs

    found = import_runs(path, runs_root(runs_dir))
    if as_json:
        keys = [{"id": one.run.id, "was": one.was, "already_here": one.already_here} for one in found]
        echo_json({"runs": keys})
        return
    for one in found:
        if one.already_here:
            typer.echo(f"Run {one.was} is already here as {one.run.id}: nothing to do.")
            continue
        why = "" if one.was == one.run.id else f" (it was {one.was}, which is taken here)"
        typer.echo(f"Imported run {one.run.id}{why}: {one.run.config().get('name', '')}, {one.run.status().state}")
        if one.module:
            typer.echo(
                f"  It imports the Python module '{one.module}' when it is evaluated or resumed: look at it first."
            )


def rebuild(as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Write the index of runs anew from the run folders."""
    from gymnast.errors import UsageError
    from gymnast.runs import index
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    if not root.is_dir():
        raise UsageError(
            f"There is no folder '{root}'. Name the one that holds the runs with --runs-dir or GYMNAST_HOME."
        )
    count = index.rebuild(root)
    if as_json:
        echo_json({"runs": count, "index": str(root / index.FILE)})
    else:
        typer.echo(f"The index of {root} was rebuilt from {_count(count, 'run folder')}.")
