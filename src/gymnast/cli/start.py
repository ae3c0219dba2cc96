"""What `train` and `resume` do once their arguments are read; everything heavy is imported here."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from gymnast.cli import imported, leaving_at_once

if TYPE_CHECKING:
    from gymnast.training.loop import TrainResult


def start_training(
    reference: str, overrides: list[str], settings: dict[str, Any], runs_dir: Path | None, *, quiet: bool, confirm: bool
) -> None:
    """Resolve, train, and leave with the right exit code."""
    from gymnast.config.load import resolve

    # Wrong names fail here, before the seconds that importing torch takes.
    resolved = resolve(reference, overrides, settings=settings, generic=generic)
    from gymnast.runs.store import runs_root

    with leaving_at_once():
        from gymnast.training.loop import train

    imported()
    ask = _ask if confirm else None
    result = train(resolved, runs_root(runs_dir), reporter=_reporter(quiet), confirm=ask)
    _leave(result)


def resume_training(
    reference: str,
    overrides: list[str],
    settings: dict[str, Any],
    runs_dir: Path | None,
    *,
    quiet: bool,
    optimizer: bool,
) -> None:
    """Continue a run."""
    from gymnast.config.load import from_saved
    from gymnast.errors import UsageError
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    run = resolve_run(root, reference)
    resolved = from_saved(run.config(), overrides, settings)
    with leaving_at_once():
        from gymnast.training.loop import Resume, resume_point, train

    imported()
    point, skipped = resume_point(run)
    reporter = _reporter(quiet)
    for sentence in skipped:
        reporter.warn(sentence)
    for axis in ("env_steps", "vec_steps"):
        budget, done = getattr(resolved.config.train, axis), int(point.manifest.counters[axis])
        unjudged = point.state["loop"].get("jobs")  # interrupted in its last evaluation: that is all there is to do
        ended = run.status().state == "finished"  # else it was stopped after its last checkpoint, before its last word
        if budget is not None and done >= budget and ended and not unjudged:
            option = {"env_steps": "-n", "vec_steps": "--vec-steps"}[axis]
            raise UsageError(
                f"Run {run.id} has spent its budget of {budget:,} {axis.replace('_', ' ')}. "
                f"Give it more: gymnast resume {run.id} {option} {2 * done}"
            )
    _leave(train(resolved, root, reporter=reporter, resume=Resume(run, point, optimizer)))


def generic(env_id: str, algorithm: str, env: dict[str, Any]) -> dict[str, Any]:
    """Settings for an env without a file, chosen from its spaces; imports Gymnasium only then."""
    from gymnast.envs.registry import generic_defaults

    return generic_defaults(env_id, algorithm, env)


def _reporter(quiet: bool) -> Any:
    from rich.console import Console

    from gymnast.training.report import Reporter

    return Reporter(Console(file=cast("IO[str]", SteadyOutput(sys.stdout))), quiet=quiet)


class SteadyOutput:
    """Standard output that may lead to a full disk: a training goes on without its words."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream does, or not at all."""
        with _full_disk_ignored():
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """What does not fit is tried again next time."""
        with _full_disk_ignored():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _full_disk_ignored() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise


def _ask() -> bool:
    import typer

    return typer.confirm("Start training?", default=True)


def _leave(result: TrainResult | None) -> None:
    """Exit at once: everything is on disk, and tearing torch down would only delay the prompt."""
    with _full_disk_ignored():
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(130 if result is not None and result.interrupted else 0)
