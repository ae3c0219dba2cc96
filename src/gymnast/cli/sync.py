"""`gymnast sync`: send what trackers have not got of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnast.cli.budget import Track, trackers
from gymnast.cli.options import RunsDir, echo
from gymnast.errors import GymnastError, UsageError
from gymnast.metrics.sinks.tracked import SHIPPED
from gymnast.metrics.trackers.base import TrackerError
from gymnast.runs.refs import resolve_run
from gymnast.runs.store import Run, runs_root
from gymnast.service.tracking.sending import Sending, in_words, only_one


def sync(
    reference: Annotated[str, typer.Argument(metavar="RUN", help="@last, an id, @best:ENV …")] = "@last",
    track: Track = None,
    runs_dir: RunsDir = None,
) -> None:
    """Send a run's missing records to trackers: after an outage, or if the run was not tracked.

    Exit code: 0 if everything has arrived, 1 if not.
    """
    run = resolve_run(runs_root(runs_dir), reference)
    names = trackers(track)
    if names is None:
        names = [name for name in (run.config().get("log") or {}).get("sinks", []) if name in SHIPPED]
    if not names:
        raise UsageError(
            f"Run {run.id} was trained without a tracker. Name one: gymnast sync {run.typed} --track tensorboard "
            f"(known: {', '.join(SHIPPED)})"
        )
    failures = [sentence for name in names if (sentence := _send(run, name)) is not None]
    if failures:
        raise GymnastError(" ".join(failures))


def _send(run: Run, name: str) -> str | None:
    """Send to one tracker; a sentence where not everything has arrived."""
    title = SHIPPED[name].title if name in SHIPPED else name
    sending = Sending(run, name)
    with only_one(run, name):
        try:
            sending.advance()
            url = sending.url
            sending.finish()
        except TrackerError as error:
            return (
                f"{title} has not accepted everything of run {run.id} ({in_words(error).rstrip('.')}). Try again later."
            )
    what = "had everything already" if sending.sent == 0 else f"got {sending.sent:,} records"
    echo(f"{title} {what} of run {run.id}: {url}")
    return None
