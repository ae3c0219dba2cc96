"""`gymnast train --seeds` and `--chain`; imports torch."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn, cast

from rich.live import Live
from rich.table import Table
from rich.text import Text

from gymnast.api.chain import Chain, ChainResult, Until, train_chain
from gymnast.api.seeds import SeedRun, SeedsResult, room_for, seeds_from, train_seeds
from gymnast.cli.launch import SteadyOutput, leave
from gymnast.config.load import Resolved
from gymnast.console import Console
from gymnast.hub.beginning import model_source
from gymnast.metrics.verdict import shown
from gymnast.runs.status import Status
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.train import train

DRAW_EVERY = 0.5
"""Seconds between two looks at the runs of all seeds."""
LINE_EVERY = 10.0
"""The same where nothing can be redrawn."""


def train_under_seeds(
    resolved: Resolved, wanted: int | list[int], jobs: int | None, root: Path, *, quiet: bool
) -> NoReturn:
    """One run per seed, a table of them while they train, and their interquartile mean."""
    console = _console()
    seeds = seeds_from(wanted, resolved.config.train.seed)
    jobs = min(len(seeds), jobs or room_for(resolved))
    for notice in resolved.notices:
        console.print(notice)
    if not quiet:
        console.print(f"{resolved.config.name}: {len(seeds)} seeds, {_at_a_time(jobs)}")
    if jobs == 1:
        result = train_seeds(resolved, seeds, root, here=lambda one: _train_here(one, root, quiet=quiet), jobs=1)
    else:
        with _Board(console, resolved.config.spec.solved_at, quiet=quiet) as board:
            result = train_seeds(resolved, seeds, root, here=lambda _: None, jobs=jobs, watch=board.update)
    console.print()
    console.print(_table_of(result.seeds, resolved.config.spec.solved_at))
    console.print(result.sentence(), style="bold")
    _what_next(console, result)
    leave(interrupted=result.interrupted, failed=bool(result.failed))


def train_chain_of(resolved: Resolved, length: int, until: Until, root: Path, *, quiet: bool) -> NoReturn:
    """Two chains of runs, without and with the optimizer of the run before, in one table."""
    console = _console()

    def said(text: str) -> None:
        if not quiet:
            console.print()
            console.rule(text, style="dim", align="left")

    result = train_chain(
        resolved, length, root, here=lambda one: _train_here(one, root, quiet=quiet), until=until, said=said
    )
    console.print()
    console.print(_chain_table(result, resolved.config.spec.solved_at))
    leave(interrupted=result.interrupted)


def _console() -> Console:
    return Console(file=cast("IO[str]", SteadyOutput(sys.stdout)), highlight=False)


def _at_a_time(jobs: int) -> str:
    if jobs == 1:
        return "one after the other"
    return f"{jobs} at a time"


def _train_here(resolved: Resolved, root: Path, *, quiet: bool) -> TrainResult | None:
    """A run in this process, with its own live table."""
    quiet = quiet or resolved.config.log.verbose == 0
    reporter = Reporter(_console(), quiet=quiet)
    return train(resolved, root, reporter=reporter, source=model_source(resolved.config))


class _Board:
    """All seeds while they train in processes: a table that is redrawn, or a line now and then."""

    def __init__(self, console: Console, threshold: float | None, *, quiet: bool) -> None:
        self._console, self._threshold, self._quiet = console, threshold, quiet
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._next = 0.0

    def __enter__(self) -> _Board:
        if self._live is not None and not self._quiet:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, seeds: Sequence[SeedRun]) -> None:
        """Look at all runs, if it is time."""
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        if self._live is not None:
            self._next = now + DRAW_EVERY
            self._live.update(_table_of(seeds, self._threshold), refresh=True)
            return
        self._next = now + LINE_EVERY
        self._console.print(" | ".join(_in_a_word(one) for one in seeds))


def _in_a_word(one: SeedRun) -> str:
    status = _status(one)
    steps = ""
    if status is not None:
        steps = f" {status.vec_steps:,} vec_steps"
    return f"seed {one.seed}: {one.state}{steps}"


def _status(one: SeedRun) -> Status | None:
    if one.run is None:
        return None
    return one.run.status()


def _table_of(seeds: Sequence[SeedRun], threshold: float | None) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("seed", "run", "state", "vec steps", "env steps", "last", "best", "solved"):
        numbers = column in ("seed", "vec steps", "env steps", "last", "best")
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for one in seeds:
        status = _status(one)
        run = "–" if one.run is None else one.run.id
        if status is None:
            table.add_row(str(one.seed), run, one.state, "–", "–", "–", "–", "–")
            continue
        table.add_row(
            str(one.seed),
            Text(run),
            one.state,
            f"{status.vec_steps:,}",
            f"{status.env_steps:,}",
            _score(status.last_return, threshold),
            _score(status.best_return, threshold),
            "yes" if status.solved else "no",
        )
    return table


def _score(score: float | None, threshold: float | None) -> str:
    if score is None:
        return "–"
    return shown(score, threshold)


def _what_next(console: Console, result: SeedsResult) -> None:
    for seed, error in result.failed.items():
        console.print(f"seed {seed} failed: {error}", style="red")
    names = shlex.join(run.reference for run in result.runs)
    if result.interrupted:
        console.print("Resume them:")
        for run in result.runs:
            console.print(f"  gymnast resume {run.typed}")
    elif len(result.runs) > 1:
        console.print(f"Next:\n  gymnast runs compare {names}")


def _chain_table(result: ChainResult, threshold: float | None) -> Table:
    """Link by link, both chains next to each other: the score it began with → its best, and the steps it took."""
    table = Table(box=None, pad_edge=False)
    for column in ("run", "without the optimizer", "vec steps", "with the optimizer", "vec steps"):
        table.add_column(column, justify="right" if column == "vec steps" else "left", overflow="fold")
    for number in range(max(len(chain.links) for chain in result.chains)):
        cells = [cell for chain in result.chains for cell in _cells(chain, number, threshold)]
        table.add_row(str(number + 1), *cells)
    return table


def _cells(chain: Chain, number: int, threshold: float | None) -> tuple[str, str]:
    if number >= len(chain.links):
        return ("solved before" if chain.solved else "–"), "–"
    if number == 0 and chain.optimizer:
        return "the same run", ""
    link = chain.links[number]
    start = ""
    if link.before is not None:
        start = f"{shown(link.before, threshold)} → "
    solved = ", solved" if link.solved else ""
    return f"{link.run.id}: {start}{_score(link.best, threshold)}{solved}", f"{link.vec_steps:,}"
