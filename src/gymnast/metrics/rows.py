"""The rows of the live table: which metrics have one, and how one is drawn at a given width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from gymnast.metrics.catalogue import VALUE_WIDTH, Catalogue, Metric, split_name
from gymnast.metrics.drawing import BAD, DIM, GOOD, MARKS, PLAIN, Glyphs, Mark, fit_words, printable, sparkline
from gymnast.metrics.goal import Subject
from gymnast.metrics.history import History
from gymnast.metrics.state import budget_of, short

Notes = Literal["trend", "names", "meanings"]
"""What follows a row's numbers; `trend` also has Stable-Baselines3's names if there is room."""

DETAILS = ("_std", "_min", "_max")
"""Endings of metrics that a short terminal can do without."""

_MARK, _GROUP, _LABEL, _CHANGE = 3, 9, 19, 12
_NUMBERS = _MARK + _GROUP + _LABEL + VALUE_WIDTH
"""Columns up to the value."""
_FIXED = _NUMBERS + 1 + _CHANGE
_ALIAS = 22
_SPARK, _SHORTEST_SPARK = 30, 8
_MEANING = 30
"""Narrower than this, meanings are not worth showing."""
_NARROW_NAME = 24


class Arrangement:
    """Which metrics have a row, in which order. A row that has come stays where it is; new ones come below."""

    def __init__(self, catalogue: Catalogue, subject: Subject) -> None:
        self.catalogue = catalogue
        self._settings = subject.settings
        self._rows = catalogue.order(subject.rows)
        self._known = frozenset(self._rows)

    def rows(self, history: History, marks: Iterable[str]) -> list[str]:
        """The fixed rows, then the others in the order in which they came."""
        shown = set(self._rows)
        late = [name for name in history.names() if name not in shown and self._comes(name, history)]
        late += [name for name in marks if name not in shown and name not in late]
        self._rows += late
        return list(self._rows)

    def settings(self, history: History) -> dict[str, float]:
        """Hyperparameters that have not changed."""
        found = dict(self._settings)
        for metric in self.catalogue:
            value = history.last(metric.name)
            if metric.row == "setting" and value is not None and metric.name not in self._rows:
                found[metric.name] = value
        return {name: found[name] for name in self.catalogue.order(found) if name not in self._rows}

    def all(self, history: History) -> list[str]:
        """Every metric there is, in the catalogue's order."""
        return self.catalogue.order({*history.names(), *self._known})

    def _comes(self, name: str, history: History) -> bool:
        """Whether a metric that has a value now gets a row it did not have from the start."""
        metric = self.catalogue.get(name)
        if metric is None or metric.row == "late":  # what a plug-in logs is never dropped
            return True
        if metric.row == "setting":
            return history.previous(name) is not None
        return metric.row.startswith("if ") or metric.row == "always"


def most_important(
    catalogue: Catalogue, names: Sequence[str], room: int, history: History, marks: Mapping[str, Mark]
) -> list[str]:
    """As many as there is room for, in their order."""

    def rank(name: str) -> int:
        """Marked, highlighted, with a better and a worse side, moving, details; last what the headline tells anyway."""
        metric = catalogue.get(name)
        if name in marks:
            return 0
        if metric is None:
            return 3
        if metric.highlight:
            return 1
        if metric.row == "headline" or not metric.namespace:
            return 6
        if metric.row == "setting" or name.endswith(DETAILS):
            return 5
        if metric.row == "all" or history.last(name) is None:
            return 4
        if metric.direction != "none":
            return 2
        return 3

    if len(names) <= room:
        return list(names)
    kept = set(sorted(names, key=rank)[: max(0, room)])  # stable: equals stay in order
    return [name for name in names if name in kept]


def span_of(history: History) -> float | None:
    """Vec steps over which changes are shown: a round number, a tenth of the budget at most."""
    budget = budget_of(history)
    if budget is None or budget < 10:
        return None
    size = 10.0 ** math.floor(math.log10(budget / 10))
    return size * next(factor for factor in (5, 2, 1) if factor * size <= budget / 10 * (1 + 1e-9))


class RowDrawer:
    """Draws rows as lines of segments."""

    def __init__(self, catalogue: Catalogue, glyphs: Glyphs) -> None:
        self.catalogue = catalogue
        self.glyphs = glyphs

    def rule(self, width: int, hints: Sequence[str], history: History, notes: Notes) -> list[Segment]:
        """The line above the rows: what there is to see, as far as there is room, and what the columns are."""
        rule, span = self.glyphs.rule, span_of(history)
        if width < _FIXED:
            return [Segment(rule * width, DIM)]
        if span is None or notes == "meanings":
            over = ""
        else:
            over = f" over {short(span)} vec_steps "
        line = ""
        for hint in hints:
            if line:
                longer = f"{line}{self.glyphs.dot} {hint} "
            else:
                longer = f"{rule} {hint} "
            if cell_len(longer + over) > _FIXED:
                break
            line = longer
        if over and cell_len(line) + cell_len(" change" + over) <= _FIXED:
            over = " change" + over
        if notes != "meanings":
            begin = _FIXED + 1
        else:
            begin = _NUMBERS + 1
        line += rule * (begin - cell_len(over) - cell_len(line)) + over
        for title, start in self._titles(width, notes):
            line += rule * (start - 1 - cell_len(line)) + f" {title} "
        return [Segment(set_cell_size(line + rule * max(0, width - cell_len(line)), width), DIM)]

    def rows(
        self,
        names: Sequence[str],
        history: History,
        marks: Mapping[str, Mark],
        notes: Notes,
        width: int,
        spare: int = 0,
    ) -> list[list[Segment]]:
        """Rows laid out for `width`; with enough spare lines, groups are set apart."""
        groups = [split_name(name)[0] for name in names]
        apart = spare >= sum(first != second for first, second in pairwise(groups))
        span = span_of(history)
        lines: list[list[Segment]] = []
        before: str | None = None
        for name, group in zip(names, groups):
            if apart and before not in (None, group):
                lines.append([])
            title = (group or "steps") if group != before else ""
            line = self._row(name, title, history, marks.get(name), notes, width, span)
            lines.append(Segment.adjust_line_length(line, width, pad=False))
            before = group
        return lines

    def _titles(self, width: int, notes: Notes) -> list[tuple[str, int]]:
        """Of the columns behind the numbers, and where they begin."""
        free = width - _FIXED - 2
        if notes == "meanings":
            return [("meaning", _NUMBERS + 2)]
        if free < _SHORTEST_SPARK:
            return []
        spark, alias, meaning = self._widths(free, notes)
        titles = []
        start = _FIXED + 2
        for title, size in (("whole run", spark), ("name in SB3", alias), ("meaning", meaning)):
            if size:
                titles.append((title, start))
                start += size + 2
        if notes == "names" or spark >= 11:
            return titles
        return []

    def _widths(self, free: int, notes: Notes) -> tuple[int, int, int]:
        """Of sparkline, alias and meaning in the columns behind the numbers."""
        if notes == "names":
            spark = free - _ALIAS - 2
            return (spark if spark >= _SHORTEST_SPARK else 0), min(free, _ALIAS), 0
        if free < _SHORTEST_SPARK + 2 + _ALIAS:
            return free, 0, 0
        spark = min(_SPARK, free - 2 - _ALIAS)
        if free - _SPARK // 2 - _ALIAS - 4 < _MEANING:
            return spark, _ALIAS, 0
        spark = max(_SPARK // 2, free - _ALIAS - 4 - 2 * _MEANING)
        return spark, _ALIAS, free - spark - _ALIAS - 4

    def _row(
        self,
        name: str,
        group: str,
        history: History,
        mark: Mark | None,
        notes: Notes,
        width: int,
        span: float | None,
    ) -> list[Segment]:
        metric = self.catalogue.get(name)
        value = history.last(name)
        if mark is None:
            sign, mark_style = ("", PLAIN)
        else:
            sign, mark_style = MARKS[mark.severity]
        if metric is not None and metric.highlight:
            highlight = Style.parse(f"bold {metric.highlight}")
        else:
            highlight = PLAIN
        value_style = highlight
        if value is None:
            value_style = DIM
        elif not math.isfinite(value):
            value_style = BAD
        number = Segment(f"{self.catalogue.format(name, value):>{VALUE_WIDTH}}", value_style)
        if width < _FIXED:  # half a number would be a wrong one: only the full name and the value
            label = Segment(set_cell_size(printable(name), _NARROW_NAME), highlight)
            return [Segment(f"{sign:<{_MARK}}", mark_style), label, number]
        line = [
            Segment(f"{sign:<{_MARK}}", mark_style),
            Segment(set_cell_size(printable(group), _GROUP - 1) + " ", DIM),
            Segment(set_cell_size(printable(split_name(name)[1]), _LABEL), highlight),
            number,
        ]
        change = self._change(metric, name, history, span)
        if mark is not None:
            return [*line, *self._marked(printable(mark.text), mark_style, change, width - _NUMBERS)]
        if notes == "meanings":
            text = "" if metric is None else metric.meaning
            return [*line, Segment("  " + fit_words(text, width - _NUMBERS - 2, self.glyphs.more), DIM)]
        return [*line, change, *self._behind(metric, name, history, notes, highlight, width - _FIXED - 2)]

    def _marked(self, text: str, style: Style, change: Segment, room: int) -> list[Segment]:
        """The text of a mark behind the change, or in its place where it would be cut."""
        behind = room - 1 - _CHANGE - 2
        if cell_len(text) <= behind or behind >= 2 * _MEANING:
            return [change, Segment("  " + fit_words(text, behind, self.glyphs.more), style)]
        return [Segment("  " + fit_words(text, room - 2, self.glyphs.more), style)]

    def _behind(
        self, metric: Metric | None, name: str, history: History, notes: Notes, highlight: Style, free: int
    ) -> list[Segment]:
        """Sparkline, SB3's name and meaning, as there is room."""
        if free < _SHORTEST_SPARK:
            return []
        spark, alias, meaning = self._widths(free, notes)
        segments = []
        if spark:
            drawn = sparkline(history.trend(name, spark), self.glyphs.blocks)
            if history.previous(name) is None:
                style = DIM
            else:
                style = highlight or DIM
            segments.append(Segment(f"  {drawn:<{spark}}", style))
        if alias:
            text = fit_words(self.catalogue.alias_label(name), alias, self.glyphs.more)
            segments.append(Segment(f"  {text:<{alias}}", DIM))
        if meaning and metric is not None:
            segments.append(Segment("  " + fit_words(metric.meaning, meaning, self.glyphs.more), DIM))
        return segments

    def _change(self, metric: Metric | None, name: str, history: History, span: float | None) -> Segment:
        """By how much a metric changed over `span` vec steps."""
        value, before = history.last(name), None if span is None else history.ago(name, span)
        if value is None or before is None or not math.isfinite(value - before) or _same(value, before):
            return Segment(" " * (1 + _CHANGE), PLAIN)
        delta = value - before
        text = f"{delta:+,.{4 if metric is None else metric.precision}f}"
        if len(text) > _CHANGE:
            text = f"{delta:+.2e}"
        if not text.strip("+-0."):
            return Segment(f"{'~0':>{1 + _CHANGE}}", DIM)  # moved by less than the digits shown
        style = DIM
        if metric is not None and metric.direction != "none":
            if (delta > 0) == (metric.direction == "up"):
                style = GOOD
            else:
                style = BAD
        return Segment(f"{text:>{1 + _CHANGE}}", style)


def _same(first: float, second: float) -> bool:
    """But for rounding: means of equal numbers differ in the last bit."""
    return abs(first - second) <= 1e-12 * max(abs(first), abs(second))
