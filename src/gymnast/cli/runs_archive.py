"""`gymnast runs export | import`: runs as one file, for another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gymnast.amounts import count, size
from gymnast.cli.options import AsJson, References, RunsDir, Trust, echo, echo_json
from gymnast.runs.archive import export_runs
from gymnast.runs.refs import resolve_runs
from gymnast.runs.store import runs_root
from gymnast.runs.trust import accept, asks_for
from gymnast.runs.unpack import Imported, import_runs


def export(
    references: References,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: RUN.zip here).")
    ] = None,
    all_checkpoints: Annotated[
        bool, typer.Option("--all-checkpoints", help="Include every checkpoint, not only best and last.")
    ] = False,
    videos: Annotated[bool, typer.Option("--videos", help="Include videos.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Pack runs into one file: config, metrics, status, log, tags, note, checkpoints. Secrets are removed."""
    runs = resolve_runs(runs_root(runs_dir), references)
    path = output
    if path is None:
        if len(runs) == 1:
            path = Path(f"{runs[0].id}.zip")
        else:
            path = Path("runs.zip")
    packed = export_runs(runs, path, all_checkpoints=all_checkpoints, videos=videos, replace=force)
    if as_json:
        echo_json({"file": str(packed.path), "runs": packed.runs, "files": packed.files, "bytes": packed.size})
        return
    names = ", ".join(packed.runs)
    echo(f"{packed.path}: {count(len(packed.runs), 'run')} ({names}), {packed.files} files, {size(packed.size)}")
    echo(f"Elsewhere: gymnast runs import {packed.path.name}")


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="An archive of 'gymnast runs export'.")],
    trust: Trust = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Unpack the runs of an archive, after checking every file of it; all of them or none."""
    found = import_runs(path, runs_root(runs_dir))
    for one in found:
        if trust:
            accept(one.run)
    if as_json:
        echo_json({"runs": [_imported(one) for one in found]})
        return
    for one in found:
        if one.already_here:
            echo(f"Run {one.was} is already here as {one.run.id}: nothing to do.")
            continue
        why = ""
        if one.was != one.run.id:
            why = f" (it was {one.was}, which is taken here)"
        echo(f"Imported run {one.run.id}{why}: {one.run.config().get('name', '')}, {one.run.status().state}")
        if code := asks_for(one.run):
            echo(f"  Playing it would import or read {', '.join(map(str, code))}. Look at that; --trust allows it.")


def _imported(one: Imported) -> dict[str, Any]:
    code = [{"key": code.key, "value": code.value} for code in asks_for(one.run)]
    return {"id": one.run.id, "was": one.was, "already_here": one.already_here, "needs_trust": code}
