"""How a Python program follows its training, and how it ends it: callbacks.

A callback is any object with some of the methods of `Callback`; a plain function is called with every row. They are called in
the thread that trains, between two iterations.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnast.errors import in_one_line
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.verdict import Verdict
from gymnast.redaction import logger
from gymnast.runs.store import Run
from gymnast.training.keeping.result import TrainResult

log = logger("gymnast")


@dataclass(frozen=True)
class Evaluated:
    """One evaluation and what it is about."""

    env_steps: int
    """Of the evaluated weights; training may already be further."""
    evaluation: Evaluation
    verdict: Verdict | None
    """Next to the env's threshold; None if it has none."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return self.evaluation.mean

    @property
    def solved(self) -> bool:
        """Whether this score solves the env."""
        return self.verdict is not None and self.verdict.solved


class Callback:
    """Derive from this, or give any object with some of these methods. Returning False stops the run at this boundary.

    An exception in a callback is reported with the place it comes from; the callback is not called again, and the run goes on.
    """

    def on_start(self, run: Run) -> bool | None:
        """The run's folder is there; nothing was learned yet in this attempt."""

    def on_iteration(self, row: Mapping[str, float | None]) -> bool | None:
        """One iteration is over: its metrics by name, as in metrics.jsonl."""

    def on_evaluation(self, result: Evaluated) -> bool | None:
        """An evaluation is over."""

    def on_checkpoint(self, folder: Path) -> bool | None:
        """A checkpoint is on disk, whole."""

    def on_end(self, result: TrainResult | None) -> None:
        """The run is over and saved; None if an error ended it."""


class Listeners:
    """Calls callbacks, and keeps their mistakes away from the run."""

    def __init__(self, callbacks: Sequence[Any] = ()) -> None:
        self._callbacks = list(callbacks)
        self.stop_reason: str | None = None
        """Why the run ends, once a callback has asked for that."""

    def start(self, run: Run) -> None:
        """The run begins or goes on."""
        self._tell("on_start", run)

    def iteration(self, row: Mapping[str, float | None]) -> None:
        """A row was written."""
        self._tell("on_iteration", row)

    def evaluations(self, results: Sequence[Evaluated]) -> None:
        """Evaluations have ended."""
        for result in results:
            self._tell("on_evaluation", result)

    def checkpoints(self, folders: Sequence[Path]) -> None:
        """Checkpoints have reached the disk."""
        for folder in folders:
            self._tell("on_checkpoint", folder)

    def end(self, result: TrainResult | None) -> None:
        """The run is over."""
        self._tell("on_end", result)

    def _tell(self, event: str, argument: Any) -> None:
        for callback in list(self._callbacks):
            method = _method(callback, event)
            if method is None:
                continue
            try:
                answer = method(argument)
            except Exception as error:
                self._callbacks.remove(callback)
                self._report(callback, event, error)
                continue
            if answer is False and self.stop_reason is None:
                self.stop_reason = f"stopped by {_name(callback)}"

    def _report(self, callback: Any, event: str, error: Exception) -> None:
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.warning(
            "warning: The callback %s failed in %s, %s line %s, and is not called again; the run goes on. %s",
            *(_name(callback), event, place.filename, place.lineno, in_one_line(error)),
            exc_info=error,
        )


def _method(callback: Any, event: str) -> Callable[[Any], Any] | None:
    """A function is called with every row; it has no other methods."""
    found = getattr(callback, event, None)
    if found is None and event == "on_iteration" and callable(callback):
        found = callback
    return found


def _name(callback: Any) -> str:
    return str(getattr(callback, "__name__", None) or type(callback).__name__)
