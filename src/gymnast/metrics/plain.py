"""Progress where nothing can be redrawn: logs, pipes and --quiet get one line now and then, without escape codes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from rich.console import Console

from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.drawing import Mark, clock, printable
from gymnast.metrics.goal import Subject
from gymnast.metrics.history import History
from gymnast.metrics.state import state_of


class PlainProgress:
    """One compact line every `interval` seconds: first the progress, then how training is doing."""

    NAMES = ("rollout/return_mean", "rollout/length_mean", "eval/return_mean", "eval/success_rate", "train/approx_kl")

    def __init__(
        self,
        console: Console,
        catalogue: Catalogue,
        config_name: str,
        interval: float = 10.0,
        *,
        run_id: str = "",
        subject: Subject | None = None,
        all_metrics: bool = False,
    ) -> None:
        self.console = console
        self.catalogue = catalogue
        self.interval = interval
        self.prefix = printable(" ".join(part for part in (config_name, run_id) if part))
        self.goal = (subject or Subject()).goal
        self.all_metrics = all_metrics
        self._history = History()
        self._marks: Mapping[str, Mark] = {}
        self._printed_at = -math.inf
        self._printed_rows = 0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._history.rows != self._printed_rows:
            self._print()

    def update(self, history: History, now: float, marks: Mapping[str, Mark] | None = None) -> bool:
        """Print a line if `interval` seconds have passed."""
        self._history, self._marks = history, marks or {}
        if now - self._printed_at < self.interval:
            return False
        self._printed_at = now
        self._print()
        return True

    def _print(self) -> None:
        self._printed_rows = self._history.rows
        last, text = self._history.last, self.catalogue.format
        names: Sequence[str] = self.NAMES
        if self.all_metrics:
            names = self.catalogue.order(self._history.names())
        steps = ("vec_steps", "env_steps")
        parts = [f"{name} {text(name, last(name))}" for name in steps if last(name) is not None]
        if (progress := last("progress")) is not None:
            parts.append(f"{progress:.1%}")
        if (eta := last("time/eta")) is not None:
            parts.append(f"ETA {clock(eta)}")
        parts.append(state_of(self._history, self.goal).sentence)
        parts += [f"{name} {text(name, last(name))}" for name in names if last(name) is not None and name not in steps]
        if last("time/fps") is not None:
            parts.append(f"{text('time/fps', last('time/fps'))} env_steps/s")
        parts += [f"{mark.severity} {name}: {printable(mark.text)}" for name, mark in self._marks.items()]
        if self.prefix:
            parts.append(self.prefix)
        with suppress(OSError):
            self.console.print(" | ".join(parts), markup=False, highlight=False, emoji=False, soft_wrap=True)
