"""The live terminal table, and a progress line for evaluation and video writing.

Lines are built as rich segments of known width rather than as a rich Table: a redraw happens on the training thread,
and measuring and wrapping every cell makes it six times as long (12 ms instead of 2 for 35 rows).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from types import TracebackType
from weakref import WeakKeyDictionary

from rich.console import Console
from rich.live import Live
from rich.segment import Segment

from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.drawing import PLAIN, Lines, Mark, activity_line, can_redraw, glyphs_for, printable
from gymnast.metrics.goal import Subject
from gymnast.metrics.headline import Headline
from gymnast.metrics.history import History
from gymnast.metrics.keys import Keys
from gymnast.metrics.notebook import NotebookConsole, NotebookScreen
from gymnast.metrics.plain import PlainProgress
from gymnast.metrics.rows import Arrangement, Notes, RowDrawer, most_important

SHOWN_AFTER = 0.5
"""Seconds after which a progress line appears."""
REDRAW_PROGRESS = 0.25
"""Seconds between redraws of a progress line."""
ALL_KEY, NOTES_KEY = "a", "n"
NOTES: dict[Notes, Notes] = {"trend": "names", "names": "meanings", "meanings": "trend"}
"""What the key for notes shows next."""

_HEADLINE = 10
_TWO_COLUMNS = 150


def open_display(
    console: Console,
    catalogue: Catalogue,
    config_name: str,
    *,
    run_id: str = "",
    interval: float = 0.5,
    quiet: bool = False,
    plain_interval: float = 10.0,
    subject: Subject | None = None,
    all_metrics: bool = False,
) -> LiveTable | PlainProgress:
    """A live table on a terminal and in a notebook; plain lines elsewhere and when quiet."""
    if quiet or not (can_redraw(console) or isinstance(console, NotebookConsole)):
        return PlainProgress(
            console, catalogue, config_name, plain_interval, run_id=run_id, subject=subject, all_metrics=all_metrics
        )
    return LiveTable(console, catalogue, config_name, interval, run_id=run_id, subject=subject, all_metrics=all_metrics)


class LiveTable:
    """A table redrawn in place from the caller's thread; its last state stays on the screen.

    What is printed meanwhile, on this console or on stdout, appears above it.
    """

    def __init__(
        self,
        console: Console,
        catalogue: Catalogue,
        config_name: str,
        interval: float,
        *,
        run_id: str = "",
        subject: Subject | None = None,
        all_metrics: bool = False,
    ) -> None:
        self.console = console
        self.catalogue = catalogue
        self.interval = interval
        self.page = int(all_metrics)
        """0 is the fixed rows; all metrics take as many pages as they need, counted from 1."""
        self.notes: Notes = "trend"
        self.subject = subject or Subject()
        glyphs = glyphs_for(console)
        self._headline = Headline(catalogue, glyphs, printable(config_name), printable(run_id))
        self._arrangement = Arrangement(catalogue, self.subject)
        self._drawer = RowDrawer(catalogue, glyphs)
        self._keys = Keys()
        self._history = History()
        self._marks: Mapping[str, Mark] = {}
        self._activity: tuple[str, float, float] | None = None
        self._over = False
        self._pages = 1
        self._drawn_at = -math.inf
        self._frame = Lines([])
        self._live: Live | NotebookScreen
        if isinstance(console, NotebookConsole):
            self._live = NotebookScreen(lambda: self._frame)
        else:
            self._live = Live(console=console, auto_refresh=False, get_renderable=lambda: self._frame)

    def __enter__(self) -> LiveTable:
        self._keys.__enter__()
        try:
            self._build()
            self._live.start(refresh=True)
        except BaseException:
            self._keys.__exit__(None, None, None)
            raise
        _ACTIVE[self.console] = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._activity, self._over = None, True
        self._keys.__exit__(kind, error, tb)
        try:
            self._build()
        finally:
            _ACTIVE.pop(self.console, None)
            # A terminal that is gone must not turn a finished run into a failed one.
            with suppress(OSError):
                self._live.stop()

    def update(self, history: History, now: float, marks: Mapping[str, Mark] | None = None) -> bool:
        """Redraw if `interval` seconds (of the caller's clock) have passed, or a key was pressed."""
        self._history = history
        self._marks = marks or {}
        pressed = self._obey_keys()
        if now - self._drawn_at < self.interval and not pressed:
            return False
        self._drawn_at = now
        self._redraw()
        return True

    def activity(self, description: str, done: float, total: float) -> None:
        """Show what holds training up (an evaluation, a video) as a bar in the headline; `done` ≥ `total` removes it."""
        if done < total:
            self._activity = (printable(description), done, total)
        else:
            self._activity = None
        self._obey_keys()
        self._redraw()

    def _obey_keys(self) -> bool:
        """Whether a key changed what is shown."""
        meant = [key for key in self._keys.pressed().lower() if key in (ALL_KEY, NOTES_KEY)]
        for key in meant:
            if key == ALL_KEY:
                self.page = (self.page + 1) % (self._pages + 1)
            else:
                self.notes = NOTES[self.notes]
        return bool(meant)

    def _redraw(self) -> None:
        self._build()
        with suppress(OSError):
            self._live.refresh()

    def _build(self) -> None:
        """Lay out one frame: the headline, then as many rows as fit, least important left out."""
        width, height = self.console.size
        room = max(1, height - 1)
        history, marks = self._history, self._marks
        fixed, everything = self._arrangement.rows(history, marks), self._arrangement.all(history)
        names = everything if self.page else fixed
        headline = self._headline.lines(
            history,
            self.subject.goal,
            self._arrangement.settings(history),
            width,
            # The headline gives way until it is down to what a beginner needs; then rows do.
            max(min(_HEADLINE - 1, room // 2), room - 1 - len(names)),
            self._activity,
            over=self._over,
        )
        space = max(0, room - len(headline) - 1)
        columns = 1
        if width >= _TWO_COLUMNS and len(names) > space:
            columns = 2
        slots = max(1, space * columns)
        self._pages = max(1, math.ceil(len(everything) / slots))
        self.page = min(self.page, self._pages)
        if self.page and self._keys.listening:
            kept = names[(self.page - 1) * slots : self.page * slots]
        else:
            kept = most_important(self.catalogue, names, slots, history, marks)
        rule = self._rule(width, columns, self._hints(len(names) - len(kept)))
        body = self._body(kept, width, columns, space)
        self._frame = Lines([*headline, rule, *body][:room])

    def _hints(self, hidden: int) -> list[str]:
        """What is shown, and the keys that show more."""
        if not self._keys.listening:
            if hidden:
                return [f"{hidden} hidden"]
            return []
        if not self.page:
            return ["a: all metrics", "n: notes", *([f"{hidden} hidden"] if hidden else [])]
        if self._pages == 1:
            return ["a: fewer", "n: notes"]
        return [f"a: page {self.page} of {self._pages}", "n: notes"]

    def _rule(self, width: int, columns: int, hints: Sequence[str]) -> list[Segment]:
        if columns == 1:
            return self._drawer.rule(width, hints, self._history, self.notes)
        half = (width - 3) // 2
        left = self._drawer.rule(half, hints, self._history, self.notes)
        return [*left, Segment(" " * 3, PLAIN), *self._drawer.rule(half, (), self._history, self.notes)]

    def _body(self, names: Sequence[str], width: int, columns: int, space: int) -> list[list[Segment]]:
        draw, history, marks, notes = self._drawer.rows, self._history, self._marks, self.notes
        if columns == 1:
            # What stays on the screen is compact, so that the result below it stands on the same one.
            return draw(names, history, marks, notes, width, spare=0 if self._over else space - len(names))
        half = (width - 3) // 2
        cut = (len(names) + 1) // 2
        left = draw(names[:cut], history, marks, notes, half)
        right = draw(names[cut:], history, marks, notes, half)
        pairs: zip_longest[tuple[list[Segment], list[Segment]]] = zip_longest(left, right, fillvalue=[])
        gap = Segment("   ", PLAIN)
        return [[*Segment.adjust_line_length(first, half), gap, *second] for first, second in pairs]


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
        self._possible = can_redraw(console) or self._table is not None
        self._in_table = False

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
