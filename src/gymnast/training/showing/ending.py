"""The end of a run: its episodes are filmed and written as tables, and its report is made. Nothing here can fail a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from gymnast.config.schema import RunConfig
from gymnast.errors import RAISED_BY_ENVS, in_one_line
from gymnast.runs.report.write import write_report
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.showing.films import Wanted, show_episodes
from gymnast.training.showing.pace import WORTH_IT, allowance

FILMS = 0.8
"""Share of the time for films and tables; the rest is for the report."""


def time_for_films(config: RunConfig, ran: float) -> float:
    """Seconds for films and tables at the end of a run that took `ran`; 0 if there are to be none."""
    wanted, seconds = _wanted(config), FILMS * allowance(ran)
    if not (wanted.video or wanted.table) or seconds < WORTH_IT:
        return 0.0
    return seconds


def _wanted(config: RunConfig) -> Wanted:
    return Wanted(config.log.video, config.log.rollouts)


def show_run(
    run: Run,
    config: RunConfig,
    timer: StageTimer,
    *,
    seconds: float,
    expected: float | None,
    hurry: Callable[[], bool],
    note: Callable[[str], None],
) -> None:
    """Films and tables, in so many seconds; `expected` is the length of an episode."""
    if seconds <= 0 or hurry():
        return
    with timer.stage("video"), _never_fatal("The last episodes could not be filmed", note):
        length = expected or config.spec.horizon or 500.0
        for sentence in show_episodes(run, config, _wanted(config), seconds=seconds, expected=length, hurry=hurry):
            note(sentence)


def report_run(run: Run, config: RunConfig, note: Callable[[str], None]) -> None:
    """`report.md` and `report.html`."""
    if config.log.report:
        with _never_fatal("The report could not be written", note):
            write_report(run)


@contextlib.contextmanager
def _never_fatal(what: str, note: Callable[[str], None]) -> Iterator[None]:
    """A run that is saved is not spoilt by what shows it; a second Ctrl-C leaves this part only."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"{what}: interrupted.")
    except RAISED_BY_ENVS as error:
        note(f"{what}: {in_one_line(error)}.")
