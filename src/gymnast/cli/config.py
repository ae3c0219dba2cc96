"""`gymnast config show | diff | check`; `list` lies in `config_list`, the commands that write files in `config_files`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from gymnast.cli.options import AsJson, Overrides, RunsDir, echo, echo_json
from gymnast.config.compare import Difference, compare
from gymnast.config.leaves import text_of
from gymnast.console import Console
from gymnast.service.configs import ConfigCard, check_configs
from gymnast.service.settings import resolved_reference, show_config


def show(
    reference: Annotated[
        str, typer.Argument(metavar="ENV:VARIANT|RUN", help="e.g. CartPole-v1:ppo, or a run: @last, an id.")
    ],
    overrides: Overrides = None,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Show every value of a config or a run, and where it comes from."""
    card = show_config(reference, overrides or [], runs_dir)
    if as_json:
        data = {"config": card.config, "origins": card.origins, "derived": card.derived}
        echo_json(data if card.run is None else {"run": card.run, **data})
    else:
        _print(card)


def _print(card: ConfigCard) -> None:
    console = Console()
    for notice in card.notices:
        console.print(notice, style="yellow")
    title = card.name
    if card.run is not None:
        title = f"{card.name}, run {card.run}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", style="dim", overflow="fold")
    for one in card.settings:
        dim = one.default and one.key not in card.derived
        origin = _short(one.origin) if console.width < WIDE else one.origin
        table.add_row(one.key, one.text, origin, style="dim" if dim else None)
    console.print(table)
    console.print(f"The spec of the env: gymnast env show {card.env}", style="dim")


WIDE = 110
"""Columns from which on two places fit next to each other."""


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="ENV:VARIANT, FILE.yaml:VARIANT, or a run (@last, an id).")],
    second: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    spec: Annotated[bool, typer.Option("--spec", help="Also compare the texts of the spec.")] = False,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """Compare two resolved configs, and show where each value comes from.

    The exit code is 0 whether they differ or not; programs read --json.
    """
    (name, old), (other, new) = (resolved_reference(reference, runs_dir) for reference in (first, second))
    for notice in (*old.notices, *new.notices):
        echo(notice, err=True)
    found = compare(old, new, everything=spec)
    if as_json:
        echo_json({"a": name, "b": other, "differences": [dataclasses.asdict(difference) for difference in found]})
        return
    if not found:
        echo(f"{name} and {other} are equal.")
        return
    console = Console(highlight=False)
    console.print(_differences(found, (name, other), wide=console.width >= WIDE))


def _differences(found: Sequence[Difference], names: tuple[str, str], *, wide: bool) -> Table:
    """A row per key; on a narrow terminal the origins go below the key, so that no file name is cut."""
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True)
    for name in names:
        table.add_column(name, overflow="fold")
    if wide:
        table.add_column("from", style="dim", overflow="fold")
    for one in found:
        values = [
            "–" if place is None else text_of(value)
            for value, place in ((one.old, one.old_from), (one.new, one.new_from))
        ]
        places = dict.fromkeys(_short(place or "–") for place in (one.old_from, one.new_from))
        if wide:
            table.add_row(one.key, *values, " → ".join(places))
        else:
            below = " →\n".join(f"  {place}" for place in places)
            table.add_row(Text.assemble(one.key, "\n", (below, "dim")), *values)
    return table


def _short(place: str) -> str:
    """`CartPole-v1.yaml:30`: that presets are shipped goes without saying where a line is short."""
    return place.removeprefix("presets/envs/").removeprefix("presets/")


def check(
    references: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV:VARIANT|FILE]...", help="What to check; everything by default.")
    ] = None,
) -> None:
    """Resolve and validate configs: every variant of every shipped file, or the given ones."""
    checked = check_configs(references or [])
    wrong = [one for one in checked if one.problem is not None]
    for one in wrong:
        echo(f"✗ {one.reference}: {one.problem}", err=True)
    echo(f"{len(checked) - len(wrong)} of {len(checked)} configs are valid")
    if wrong:
        raise typer.Exit(1)
