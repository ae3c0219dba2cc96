"""`gymnast env list`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from gymnast.cli.options import AsJson, echo, echo_json
from gymnast.console import Console
from gymnast.service.envs import EnvEntry
from gymnast.service.envs import list_envs as find_envs
from gymnast.service.plain import plain


def list_envs(
    words: Annotated[list[str] | None, typer.Argument(help="Only ids that contain all of these words.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include installed envs without a preset.")] = False,
    as_json: AsJson = False,
) -> None:
    """List environments with presets; with --all, every installed Gymnasium id."""
    entries = find_envs(words or [], everything=everything)
    if as_json:
        echo_json(plain(entries))
        return
    if not entries:
        told = f"No environment has {' and '.join(repr(word) for word in words or [])} in its id."
        if not everything:
            told += " --all also looks at envs without a preset."
        echo(told, err=True)
        raise typer.Exit(1)
    _print(entries)


def _print(entries: list[EnvEntry]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("environment", "family", "solved at", "variants", "installed"):
        table.add_column(column, overflow="fold", no_wrap=column in ("environment", "family"), min_width=len(column))
    for entry in entries:
        solved = ""
        if entry.solved_at is not None:
            solved = f"{entry.solved_at:g}"
        installed = entry.install or "yes"
        table.add_row(entry.id, entry.family, solved, ", ".join(entry.variants), installed)
    Console(highlight=False).print(table)
