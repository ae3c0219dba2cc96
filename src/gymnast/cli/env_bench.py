"""`gymnast env bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnast.cli import imported, leaving_at_once
from gymnast.cli.options import AsJson, Overrides, RunsDir, echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gymnast.config.schema import EnvConfig
    from gymnast.envs.benching import Measurement


def bench(
    reference: Annotated[str, typer.Argument(metavar="ENV[:VARIANT]", help="CartPole-v1, LunarLander-v3:a2c …")],
    overrides: Overrides = None,
    seconds: Annotated[
        float, typer.Option("--seconds", "-s", min=0.01, help="How long each setting is measured.")
    ] = 0.5,
    as_json: AsJson = False,
    runs_dir: RunsDir = None,
) -> None:
    """How many env steps per second each way of stepping gives, and how many envs to run.

    The result is kept beside the runs: `env.n_envs=auto` uses it on this machine. Nothing is learned here.
    """
    from gymnast.cli.start import generic
    from gymnast.config.load import resolve

    config = resolve(reference, overrides or [], generic=generic).config.env
    from gymnast.runs.bench import recommended, save
    from gymnast.runs.store import runs_root

    imported()
    with leaving_at_once():
        measurements = _measured(config, seconds, quiet=as_json)
    root = runs_root(runs_dir)
    path = save(root, config, measurements)
    if as_json:
        echo_json(_as_json(config, measurements))
        return
    _print_table(measurements)
    _warn_of_load()
    _print_advice(reference, config, measurements)
    auto = recommended(root, config)
    typer.echo(f"Kept in {path}: " + (f"env.n_envs=auto is now {auto[0]}." if auto else "env.n_envs=auto reads it."))


def _measured(config: EnvConfig, seconds: float, *, quiet: bool) -> list[Measurement]:
    """All measurements; a line on the terminal says which one is under way."""
    from contextlib import nullcontext

    from rich.console import Console

    from gymnast.envs import benching

    console = Console(stderr=True)
    live = console.is_terminal and not quiet
    with console.status(config.id) if live else nullcontext() as status:
        found: list[Measurement] = []

        def show(setting: benching.Setting) -> None:
            if status is not None:
                best = max((one.steps_per_second for one in found), default=None)
                so_far = "" if best is None else f"  (best so far {best:,.0f} steps/s)"
                status.update(f"{config.id}: {setting}{so_far}")

        for measurement in benching.bench(config, seconds, show):
            found.append(measurement)
    return found


def _as_json(config: EnvConfig, measurements: Sequence[Measurement]) -> dict[str, Any]:
    from dataclasses import asdict

    from gymnast.envs.benching import machine, recommend

    rows = [{**asdict(one.setting), "steps_per_second": one.steps_per_second} for one in measurements]
    best = recommend(measurements)
    chosen = None if best is None else rows[list(measurements).index(best)]
    return {"env": config.id, "machine": machine(), "measurements": rows, "recommended": chosen}


def _print_table(measurements: Sequence[Measurement]) -> None:
    """One column per way of stepping, one row per number of envs; the best is marked with a star."""
    from rich.console import Console
    from rich.table import Table

    from gymnast.envs.benching import recommend

    best, chosen = max(measurements, key=lambda one: one.steps_per_second), recommend(measurements)
    ways = list(dict.fromkeys((one.setting.vectorization, one.setting.n_workers) for one in measurements))
    table = Table(box=None, pad_edge=False)
    table.add_column("envs", justify="right")
    for kind, workers in ways:
        table.add_column(kind if workers is None else f"{kind} {workers}", justify="right")
    for n_envs in sorted({one.setting.n_envs for one in measurements}):
        cells = []
        for way in ways:
            at = [one for one in measurements if (one.setting.vectorization, one.setting.n_workers) == way]
            cell = next((one for one in at if one.setting.n_envs == n_envs), None)
            mark = "*" if cell is best else "←" if cell is chosen else " "
            cells.append("" if cell is None else f"{cell.steps_per_second:,.0f} {mark}")
        table.add_row(str(n_envs), *cells)
    console = Console(highlight=False)
    console.print("Env steps per second (random actions, nothing learned)", style="bold")
    console.print(table)
    console.print("* fastest   ← recommended", style="dim")


def _warn_of_load() -> None:
    """Speeds measured beside other work are too low, and not equally so."""
    import os

    from gymnast.envs.choose import cores

    if hasattr(os, "getloadavg") and os.getloadavg()[0] > cores() + 1.5:
        load = os.getloadavg()[0]
        typer.echo(f"This machine is busy (load {load:.1f} on {cores()} cores): measure again when it is idle.")


def _print_advice(reference: str, config: EnvConfig, measurements: Sequence[Measurement]) -> None:
    from gymnast.envs.benching import NEAR, recommend
    from gymnast.envs.choose import choose_vectorization

    chosen = recommend(measurements)
    assert chosen is not None
    kind, reason = choose_vectorization(config)
    changes = [f"env.n_envs={chosen.setting.n_envs}"]
    if chosen.setting.vectorization != kind:
        changes.append(f"env.vectorization={chosen.setting.vectorization}")
    if chosen.setting.n_workers is not None and chosen.setting.vectorization != "inprocess":
        changes.append(f"env.n_workers={chosen.setting.n_workers}")
    typer.echo(
        f"Recommended: {chosen.setting}, {chosen.steps_per_second:,.0f} steps/s. More envs mean fewer updates per sample: these "
        f"are the fewest that train a small network within {1 - NEAR:.0%} of the best speed."
    )
    typer.echo(f"  gymnast train {reference} {' '.join(changes)}")
    if chosen.setting.vectorization != kind:
        typer.echo(f"By itself gymnast steps it {kind} ({reason}).")
