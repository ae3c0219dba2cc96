"""Films of a short run are made behind the prompt, by a fork of the process that trained.

A film takes half a second, mostly to load what draws and encodes. Behind an hour of training nobody notices; behind a second
of it, whoever typed the command waits. A fork has everything else in memory already. Where nobody waits at a terminal, a
command ends when all of its files are there, so that a script may use them at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from dataclasses import dataclass

import torch

from gymnast.config.schema import RunConfig
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.showing.ending import FILMS, report_run, show_run, time_for_films
from gymnast.training.showing.pace import A_SECOND, SHARE

LAST_SECONDS = 20
"""So long after the training the fork ends, whatever an env's drawing still waits for."""
NICE = 10
"""The next command goes first."""


@dataclass(frozen=True)
class Unshown:
    """A run whose films are still to be made."""

    run: Run
    config: RunConfig
    expected: float | None
    """Length of an episode."""

    def show(self) -> None:
        """Films and tables, and the report with them, in a second; nothing of a run that was removed meanwhile."""
        show_run(
            self.run,
            self.config,
            StageTimer(),
            seconds=FILMS * A_SECOND,
            expected=self.expected,
            hurry=lambda: not self.run.exists(),
            note=self._note,
        )
        if self.run.exists():
            report_run(self.run, self.config, self._note)

    def _note(self, sentence: str) -> None:
        with self.run.log_path.open("a", encoding="utf-8") as log:
            log.write(f"note: {sentence}\n")


def left_unshown(run: Run, config: RunConfig, *, ran: float, expected: float | None) -> Unshown | None:
    """What can be left to a fork: the films of a run too short for them. None if they are to be made here and now."""
    if not time_for_films(config, ran):
        return None
    is_short = SHARE * ran < A_SECOND
    sends_films = bool(config.log.sinks) and config.log.capture_video  # whoever sends them waits for the end of the run
    forks = sys.platform == "linux" and not torch.cuda.is_initialized()  # neither CUDA nor macOS outlives a fork
    if is_short and forks and not sends_films:
        return Unshown(run, config, expected)
    return None


def show_behind_the_prompt(unshown: Unshown) -> None:
    """Make the films in a fork of this process, which is about to end: its threads, files and locks are closed."""
    # Where this process leads the session of its terminal, its end hangs up on a fork that has not left that session yet.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        child = os.fork()
    except OSError:  # no memory, or no more processes: late is better than not at all
        unshown.show()
        return
    if child:
        return
    try:
        _stand_alone()
        unshown.show()
    finally:
        os._exit(0)


def _stand_alone() -> None:
    """Belong to no terminal, hold nobody's file open, and end in any case."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(LAST_SECONDS)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    torch.set_num_threads(1)  # the threads of the process that trained are not in its fork
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names of descriptors, not of files
        # Whoever reads a pipe to its end must not wait for this process. The numbers stay taken, so that an object that
        # closes its own late hits no other file.
        with contextlib.suppress(OSError):
            os.dup2(nothing, int(name))
