"""Training itself, for `train` and `resume`; imports torch."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn, TextIO, cast

import typer

from gymnast.config.load import Resolved
from gymnast.console import Console
from gymnast.hub.beginning import model_source
from gymnast.runs.checkpoint import understood
from gymnast.runs.store import Run
from gymnast.training.diagnostics.profile import Profile
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.machine import keep_freed_memory
from gymnast.training.showing.behind import show_behind_the_prompt
from gymnast.training.train import Resume, resume_point, train

Further = Callable[[Run, Resolved, Any], Resolved]
"""What becomes of the settings of a run that is finished, from the counters of its last checkpoint."""


def train_new(resolved: Resolved, root: Path, *, quiet: bool, confirm: bool, profile: bool) -> NoReturn:
    """Train a new run, and leave with the right exit code."""
    keep_freed_memory()
    quiet = quiet or resolved.config.log.verbose == 0
    source = model_source(resolved.config)
    ask = _ask if confirm else None
    result = train(
        resolved,
        root,
        reporter=_reporter(quiet),
        confirm=ask,
        source=source,
        profile=_profile(profile),
        leaves=sys.stdout.isatty(),
    )
    _leave(result)


def train_on(
    run: Run,
    resolved: Resolved,
    root: Path,
    further: Further,
    *,
    quiet: bool,
    optimizer: bool,
    profile: bool,
    inexact: bool,
) -> NoReturn:
    """Continue a run from its last whole checkpoint, and leave with the right exit code."""
    keep_freed_memory()
    point, skipped = resume_point(run, inexact=inexact)
    reporter = _reporter(quiet or resolved.config.log.verbose == 0)
    for sentence in skipped:
        reporter.warn(sentence)
    with understood(point.folder):
        unjudged = point.state["loop"].get("jobs")  # interrupted in its last evaluation: that is all there is to do
        # A run that is not finished was stopped, or killed before its last word.
        if run.status().state == "finished" and not unjudged:
            resolved = further(run, resolved, point.manifest.counters)
    resume = Resume(run, point, optimizer)
    result = train(
        resolved, root, reporter=reporter, resume=resume, profile=_profile(profile), leaves=sys.stdout.isatty()
    )
    _leave(result)


def _profile(wanted: bool) -> Profile | None:
    if not wanted:
        return None
    return Profile.of_this_process()


def _reporter(quiet: bool) -> Reporter:
    return Reporter(Console(file=cast("IO[str]", SteadyOutput(sys.stdout))), quiet=quiet)


class SteadyOutput:
    """Standard output that may lead to a full disk, a closed pipe or a lost terminal: a training goes on without its words."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream does, or not at all."""
        with _lost_words_ignored():
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """What does not fit is tried again next time."""
        with _lost_words_ignored():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _lost_words_ignored() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EIO):
            raise


def _ask() -> bool:
    return typer.confirm("Start training?", default=True)


def _leave(result: TrainResult | None) -> NoReturn:
    if result is not None and result.unshown is not None:
        with _lost_words_ignored():
            sys.stdout.flush()
        show_behind_the_prompt(result.unshown)
    leave(interrupted=result is not None and result.interrupted)


def leave(*, interrupted: bool = False, failed: bool = False) -> NoReturn:
    """Exit at once: everything is on disk, and tearing torch down would only delay the prompt."""
    with _lost_words_ignored():
        sys.stdout.flush()
        sys.stderr.flush()
    if interrupted:
        os._exit(130)
    os._exit(int(failed))
