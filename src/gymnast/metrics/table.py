"""The live terminal table, its plain-text stand-in, and a progress line for evaluation and video writing.

Lines are built as rich segments of known width rather than as a rich Table: a redraw happens on the training thread,
and measuring and wrapping every cell makes it six times as long (12 ms instead of 2 for 35 rows).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise, zip_longest
from types import TracebackType
from typing import Protocol
from weakref import WeakKeyDictionary

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.segment import Segment
from rich.style import Style

from gymnast.metrics.catalogue import VALUE_WIDTH, Catalogue, split_name
from gymnast.metrics.drawing import (
    ALERT,
    BAD,
    BOLD,
    DIM,
    GOOD,
    PLAIN,
    Lines,
    activity_line,
    bar,
    can_redraw,
    clock,
    glyphs_for,
    printable,
    sparkline,
)
from gymnast.metrics.history import History

SHARES = ("env", "policy", "learn", "eval", "checkpoint", "video", "other")
"""Stages of the split of time, in the order of the header."""
IN_HEADER = {"env_steps", "vec_steps", "progress", "time/seconds", "time/fps", "time/fps_now", "time/eta"} | {
    f"time/{share}" for share in SHARES
}
DETAILS = ("_std", "_min", "_max")
"""Endings of metrics that, like constants, a short terminal can do without."""
SHOWN_AFTER = 0.5
"""Seconds after which a progress line appears."""
REDRAW_PROGRESS = 0.25
"""Seconds between redraws of a progress line."""

_GROUP, _LABEL, _DELTA, _SPARK = 8, 19, 12, 30
_NAME = 24
_FIXED = 2 + _GROUP + _LABEL + VALUE_WIDTH + 1 + _DELTA + 2
_NOTE = 24  # narrower than this, meanings are not worth showing and alerts take room from the sparkline
_SHORTEST_SPARK = 8
_TWO_COLUMNS = 150


class Display(Protocol):
    """What the training loop sees, whether a table or plain lines."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def update(self, history: History, now: float, alerts: Mapping[str, str] | None = None) -> bool:
        """Show the latest values unless the last redraw is too recent; says whether it did."""
        ...


def open_display(
    console: Console,
    catalogue: Catalogue,
    config_name: str,
    *,
    run_id: str = "",
    interval: float = 0.5,
    quiet: bool = False,
    plain_interval: float = 10.0,
) -> LiveTable | PlainProgress:
    """A live table on a terminal; plain lines elsewhere and when quiet."""
    if quiet or not can_redraw(console):
        return PlainProgress(console, catalogue, config_name, plain_interval, run_id=run_id)
    return LiveTable(console, catalogue, config_name, interval, run_id=run_id)


class LiveTable:
    """A table redrawn in place from the caller's thread; its last state stays on the screen.

    What is printed meanwhile, on this console or on stdout, appears above it.
    """

    def __init__(
        self, console: Console, catalogue: Catalogue, config_name: str, interval: float, *, run_id: str = ""
    ) -> None:
        self.console = console
        self.catalogue = catalogue
        self.title = printable(config_name)
        self.run_id = printable(run_id)
        self.interval = interval
        self._glyphs = glyphs_for(console)
        self._history = History()
        self._alerts: Mapping[str, str] = {}
        self._activity: tuple[str, float, float] | None = None
        self._shown: dict[str, tuple[float, float | None]] = {}  # value and delta, as last drawn
        self._drawn_at = -math.inf
        self._frame = Lines([])
        self._live = Live(console=console, auto_refresh=False, get_renderable=lambda: self._frame)

    def __enter__(self) -> LiveTable:
        self._live.start()
        _ACTIVE[self.console] = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._activity = None
        try:
            if self._history.rows:
                self._build()
        finally:
            _ACTIVE.pop(self.console, None)
            # A terminal that is gone must not turn a finished run into a failed one.
            with suppress(OSError):
                self._live.stop()

    def update(self, history: History, now: float, alerts: Mapping[str, str] | None = None) -> bool:
        """Redraw if `interval` seconds (of the caller's clock) have passed; `alerts` are short texts by metric."""
        self._history = history
        self._alerts = alerts or {}
        if now - self._drawn_at < self.interval:
            return False
        self._drawn_at = now
        self._redraw()
        return True

    def activity(self, description: str, done: float, total: float) -> None:
        """Show what holds training up (an evaluation, a video) as a bar in the header; `done` ≥ `total` removes it."""
        self._activity = (printable(description), done, total) if done < total else None
        self._redraw()

    def _redraw(self) -> None:
        self._build()
        with suppress(OSError):
            self._live.refresh()

    def _build(self) -> None:
        """Lay out one frame: header, then as many rows as fit, least important left out."""
        width, height = self.console.size
        self._remember_shown()
        names = self.catalogue.order(self._history.names())
        header_height = 4 + (self._activity is not None)
        room = max(1, height - 1 - header_height)
        columns = 2 if width >= _TWO_COLUMNS and len(names) > room else 1
        kept = self._most_important(names, room * columns)
        lines = self._header(width, len(names) - len(kept))
        if columns == 2:
            half = (width - 3) // 2
            cut = (len(kept) + 1) // 2
            left, right = self._rows(kept[:cut], half), self._rows(kept[cut:], half)
            pairs: zip_longest[tuple[list[Segment], list[Segment]]] = zip_longest(left, right, fillvalue=[])
            gap = Segment("   ", PLAIN)
            lines += [[*Segment.adjust_line_length(first, half), gap, *second] for first, second in pairs]
        else:
            lines += self._rows(kept, width, spare=room - len(kept))
        self._frame = Lines(lines[: max(1, height - 1)])

    def _remember_shown(self) -> None:
        """Deltas are against what the reader saw last, and stand until the value changes again."""
        for name in self._history.names():
            value = self._history.last(name)
            if value is None:
                continue
            seen = self._shown.get(name)
            if seen is None:
                self._shown[name] = (value, None)
            elif seen[0] != value:
                self._shown[name] = (value, value - seen[0])

    def _most_important(self, names: Sequence[str], room: int) -> list[str]:
        if len(names) <= room:
            return list(names)
        kept = set(sorted(names, key=self._rank)[:room])  # stable: equals stay in catalogue order
        return [name for name in names if name in kept]

    def _rank(self, name: str) -> int:
        """Alerted, highlighted, with a better and a worse side, moving, details; last what the header tells anyway."""
        if name in self._alerts:
            return 0
        metric = self.catalogue.get(name)
        if metric is not None and metric.highlight:
            return 1
        if name in IN_HEADER or "/" not in name:
            return 5
        if name.endswith(DETAILS) or self._history.previous(name) is None:
            return 4
        return 2 if metric is not None and metric.direction != "none" else 3

    def _header(self, width: int, hidden: int) -> list[list[Segment]]:
        last = self._history.last
        dot = f" {self._glyphs.dot} "
        title = f" {self.title}{dot + self.run_id if self.run_id else ''}  "
        progress, seconds, eta = last("progress"), last("time/seconds"), last("time/eta")
        times = [] if progress is None else [f" {progress:6.1%}"]
        times += [] if seconds is None else [f"{clock(seconds)} elapsed"]
        times += [] if eta is None else [f"ETA {clock(eta)}"]
        tail = dot.join(times)
        meter = (
            [] if progress is None else bar(self._glyphs, progress, min(60, width - cell_len(title) - len(tail) - 1))
        )

        shown = {name: self.catalogue.format(name, last(name)) for name in IN_HEADER if last(name) is not None}
        counts = [f"{name} {shown[name]}" for name in ("env_steps", "vec_steps") if name in shown]
        if "time/fps" in shown:
            counts.append(f"{shown['time/fps']} steps/s")
            if "time/fps_now" in shown:
                counts[-1] += f" (now {shown['time/fps_now']})"

        shares = [(name, last(f"time/{name}")) for name in SHARES]
        split = [f"{name} {share:.0%}" for name, share in shares if share is not None and share >= 0.005]
        more = f" {hidden} rows hidden {self._glyphs.rule * 2}" if hidden else ""
        lines = [
            [Segment(title, BOLD), *meter, Segment(tail, BOLD)],
            [Segment(f" {dot.join(counts)}", PLAIN)],
            [Segment(f" time: {dot.join(split)}", DIM)],
        ]
        if self._activity is not None:
            lines.append(activity_line(self._glyphs, *self._activity))
        return [*lines, [Segment(self._glyphs.rule * (width - len(more)) + more, DIM)]]

    def _rows(self, names: Sequence[str], width: int, spare: int = 0) -> list[list[Segment]]:
        """Rows laid out for `width`; with enough spare lines, groups are set apart."""
        groups = [split_name(name)[0] for name in names]
        apart = spare >= sum(first != second for first, second in pairwise(groups))
        rows: list[list[Segment]] = []
        shown = None
        for name, group in zip(names, groups):
            if apart and shown not in (None, group):
                rows.append([])
            rows.append(self._row(name, (group or "steps") if group != shown else "", width))
            shown = group
        return rows

    def _row(self, name: str, group: str, width: int) -> list[Segment]:
        metric = self.catalogue.get(name)
        value, delta = self._shown[name]
        alert = self._alerts.get(name)
        highlight = Style.parse(f"bold {metric.highlight}") if metric is not None and metric.highlight else PLAIN
        text = self.catalogue.format(name, value)
        line = [
            Segment("! " if alert else "  ", ALERT),
            Segment(set_cell_size(printable(group), _GROUP - 1) + " ", DIM),
            Segment(set_cell_size(printable(split_name(name)[1]), _LABEL), highlight),
            Segment(f"{text:>{VALUE_WIDTH}} ", highlight if math.isfinite(value) else BAD),
            self._delta(name, delta),
        ]
        if width < _FIXED:  # half a number would be a wrong one: only the full name and the value
            line[1:] = [Segment(set_cell_size(printable(name), _NAME), highlight), line[3]]
        free = width - _FIXED
        spark_width = min(_SPARK, free)
        if alert and free - spark_width < 2 + _NOTE:
            spark_width = free - 2 - _NOTE if free >= 2 + _NOTE + _SHORTEST_SPARK else 0
        if spark_width > 0:
            spark = sparkline(self._history.trend(name, spark_width), self._glyphs.blocks)
            constant = self._history.previous(name) is None
            line.append(Segment(f"  {spark:<{spark_width}}", DIM if constant else highlight))
        if alert:
            line.append(Segment(f"  {printable(alert)}", ALERT))
        elif metric is not None and free - spark_width >= 2 + _NOTE:
            line.append(Segment(f"  {metric.meaning}", DIM))
        return line

    def _delta(self, name: str, delta: float | None) -> Segment:
        metric = self.catalogue.get(name)
        if delta is None or not math.isfinite(delta):
            return Segment(" " * _DELTA, PLAIN)
        text = f"{delta:+,.{4 if metric is None else metric.precision}f}"
        if len(text) > _DELTA:
            text = f"{delta:+.2e}"
        if not text.strip("+-0."):
            return Segment(f"{'~0':>{_DELTA}}", DIM)  # moved by less than the digits shown
        if metric is None or metric.direction == "none":
            return Segment(f"{text:>{_DELTA}}", DIM)
        better = (delta > 0) == (metric.direction == "up")
        return Segment(f"{text:>{_DELTA}}", GOOD if better else BAD)


class PlainProgress:
    """One compact line every `interval` seconds, without escape codes: for logs, pipes and --quiet."""

    NAMES = ("rollout/return_mean", "rollout/length_mean", "eval/return_mean", "eval/success_rate", "train/approx_kl")

    def __init__(
        self, console: Console, catalogue: Catalogue, config_name: str, interval: float = 10.0, *, run_id: str = ""
    ) -> None:
        self.console = console
        self.catalogue = catalogue
        self.interval = interval
        self.prefix = printable(" ".join(part for part in (config_name, run_id) if part))
        self._history = History()
        self._alerts: Mapping[str, str] = {}
        self._printed_at = -math.inf
        self._printed_rows = 0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._history.rows != self._printed_rows:
            self._print()

    def update(self, history: History, now: float, alerts: Mapping[str, str] | None = None) -> bool:
        """Print a line if `interval` seconds have passed; alerts are only counted here."""
        self._history, self._alerts = history, alerts or {}
        if now - self._printed_at < self.interval:
            return False
        self._printed_at = now
        self._print()
        return True

    def _print(self) -> None:
        self._printed_rows = self._history.rows
        last, text = self._history.last, self.catalogue.format
        parts = [self.prefix] if self.prefix else []
        if (progress := last("progress")) is not None:
            parts.append(f"{progress:.1%}")
        parts += [f"{name} {text(name, last(name))}" for name in ("env_steps", *self.NAMES) if last(name) is not None]
        if last("time/fps") is not None:
            parts.append(f"{text('time/fps', last('time/fps'))} steps/s")
        if (eta := last("time/eta")) is not None:
            parts.append(f"ETA {clock(eta)}")
        if self._alerts:
            parts.append(f"alerts {len(self._alerts)}")
        with suppress(OSError):
            self.console.print(" | ".join(parts), markup=False, highlight=False, emoji=False, soft_wrap=True)


class ProgressLine:
    """Counts finished pieces of some long work."""

    def __init__(self, console: Console, description: str, total: float) -> None:
        self.done = 0.0
        self.total = total
        self._console = console
        self._description = printable(description)
        self._begin = self._drawn_at = time.monotonic()
        self._table = _ACTIVE.get(console)
        self._live: Live | None = None
        self._possible = can_redraw(console)
        self._in_table = False

    def advance(self, count: float = 1) -> None:
        """`count` more pieces are done."""
        self.update(self.done + count)

    def update(self, done: float) -> None:
        """`done` pieces are done in all."""
        self.done = done
        now = time.monotonic()
        if not self._possible or now - self._begin < SHOWN_AFTER or now - self._drawn_at < REDRAW_PROGRESS:
            return
        self._drawn_at = now
        if self._table is not None:
            # The table draws it: two live displays on one terminal would overwrite each other.
            self._in_table = True
            self._table.activity(self._description, done, self.total)
            return
        line = activity_line(glyphs_for(self._console), self._description, done, self.total)
        with suppress(OSError):
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False, transient=True)
                self._live.start()
            self._live.update(Lines([line]), refresh=True)

    def close(self) -> None:
        """Take the line off the screen."""
        if self._in_table and self._table is not None:
            self._table.activity("", 1, 1)
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()


@contextmanager
def progress(console: Console, description: str, total: float) -> Iterator[ProgressLine]:
    """A progress bar that appears only after half a second, only on a terminal, and leaves nothing behind."""
    line = ProgressLine(console, description, total)
    try:
        yield line
    finally:
        line.close()


_ACTIVE: WeakKeyDictionary[Console, LiveTable] = WeakKeyDictionary()
