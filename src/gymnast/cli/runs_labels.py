"""`gymnast runs tag | note`."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnast.cli.options import AsJson, RunsDir, echo, echo_json
from gymnast.runs import index
from gymnast.runs.labels import change_tags, read_note, write_note
from gymnast.runs.refs import resolve_run
from gymnast.runs.store import runs_root

Reference = Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …", show_default=False)]


def tag(
    reference: Reference,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="[TAG]...", help="Tags to add; 'keep' protects a run from prune.")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", help="A tag to remove; repeatable.")] = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Add and remove tags of a run; without arguments, print them."""
    run = resolve_run(runs_root(runs_dir), reference)
    after = run.tags()
    if tags or remove:
        after = change_tags(run, tags or [], remove or [])
        index.upsert(run)
    if as_json:
        echo_json({"id": run.id, "tags": after})
    else:
        echo(f"{run.id}: {' '.join(after) or 'no tags'}")


def note(
    reference: Reference,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The new note; '' removes it.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Write a note about a run; without text, print it."""
    run = resolve_run(runs_root(runs_dir), reference)
    if text is not None:
        write_note(run, text)
    if as_json:
        echo_json({"id": run.id, "note": read_note(run)})
    else:
        echo(f"{run.id}: {read_note(run) or 'no note'}")
