"""`gymnast env bench`: how fast an env can be stepped here."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from gymnast.cli.options import AsJson, Overrides, RunsDir, echo, echo_json
from gymnast.cli.process import imported, leaving_at_once
from gymnast.console import Console
from gymnast.envs import benching
from gymnast.envs.benching import NEAR, machine, recommend
from gymnast.envs.choose import choose_vectorization, cores
from gymnast.runs.bench import recommended, save
from gymnast.runs.store import runs_root
from gymnast.service.configs import resolved_config

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
    """Measure env steps per second for each way of stepping, and suggest how many envs to run.

    The result is saved next to the runs: `env.n_envs=auto` uses it on this machine. Nothing is trained.
    """
    config = resolved_config(reference, overrides or []).config.env
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
    use = f"env.n_envs=auto is now {auto[0]}." if auto else "env.n_envs=auto reads it."
    echo(f"Kept in {path}: {use}")


def _measured(config: EnvConfig, seconds: float, *, quiet: bool) -> list[Measurement]:
    """All measurements; a line on the terminal says which one is under way."""
    console = Console(stderr=True)
    live = console.is_terminal and not quiet
    with console.status(config.id) if live else nullcontext() as status:
        found: list[Measurement] = []

        def show(setting: benching.Setting) -> None:
            if status is not None:
                line = f"{config.id}: {setting}"
                if found:
                    line += f"  (best so far {max(one.steps_per_second for one in found):,.0f} steps/s)"
                status.update(line)

        for measurement in benching.bench(config, seconds, show):
            found.append(measurement)
    return found


def _as_json(config: EnvConfig, measurements: Sequence[Measurement]) -> dict[str, Any]:
    rows = [{**asdict(one.setting), "steps_per_second": one.steps_per_second} for one in measurements]
    best = recommend(measurements)
    chosen = None
    if best is not None:
        chosen = rows[list(measurements).index(best)]
    return {"env": config.id, "machine": machine(), "measurements": rows, "recommended": chosen}


def _print_table(measurements: Sequence[Measurement]) -> None:
    """One column per way of stepping, one row per number of envs; the best is marked with a star."""
    best, chosen = max(measurements, key=lambda one: one.steps_per_second), recommend(measurements)
    ways = list(dict.fromkeys(map(_way, measurements)))
    table = Table(box=None, pad_edge=False)
    table.add_column("envs", justify="right")
    for kind, workers in ways:
        table.add_column(kind if workers is None else f"{kind} {workers}", justify="right")
    for n_envs in sorted({one.setting.n_envs for one in measurements}):
        at = {_way(one): one for one in reversed(measurements) if one.setting.n_envs == n_envs}
        cells = []
        for way in ways:
            cell = at.get(way)
            mark = " "
            if cell is best:
                mark = "*"
            elif cell is chosen:
                mark = "←"
            cells.append("" if cell is None else f"{cell.steps_per_second:,.0f} {mark}")
        table.add_row(str(n_envs), *cells)
    console = Console(highlight=False)
    console.print("Env steps per second (random actions, nothing learned)", style="bold")
    console.print(table)
    console.print("* fastest   ← recommended", style="dim")


def _way(one: Measurement) -> tuple[str, int | None]:
    """How its envs were stepped; the key of a column."""
    return one.setting.vectorization, one.setting.n_workers


def _warn_of_load() -> None:
    """Speeds measured while other work goes on are too low, and not equally so."""
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > cores() + 1.5:
        load = os.getloadavg()[0]
        echo(f"This machine is busy (load {load:.1f} on {cores()} cores): measure again when it is idle.")


def _print_advice(reference: str, config: EnvConfig, measurements: Sequence[Measurement]) -> None:
    chosen = recommend(measurements)
    assert chosen is not None
    kind, reason = choose_vectorization(config)
    changes = [f"env.n_envs={chosen.setting.n_envs}"]
    if chosen.setting.vectorization != kind:
        changes.append(f"env.vectorization={chosen.setting.vectorization}")
    if chosen.setting.n_workers is not None and chosen.setting.vectorization != "inprocess":
        changes.append(f"env.n_workers={chosen.setting.n_workers}")
    echo(
        f"Recommended: {chosen.setting}, {chosen.steps_per_second:,.0f} steps/s. More envs mean fewer updates per sample: these "
        f"are the fewest that train a small network within {1 - NEAR:.0%} of the best speed."
    )
    echo(f"  gymnast train {reference} {' '.join(changes)}")
    if chosen.setting.vectorization != kind:
        echo(f"By default gymnast steps it {kind} ({reason}).")
