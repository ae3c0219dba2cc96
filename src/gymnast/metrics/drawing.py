"""Drawing primitives of the terminal: glyphs, styles, sparklines, bars and ready lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

PLAIN = Style()
DIM = Style(dim=True)
BOLD = Style(bold=True)
GOOD = Style(color="green")
BAD = Style(color="red")
ALERT = Style(color="yellow", bold=True)
BAR = Style(color="cyan")

Severity = Literal["info", "warning", "error"]


class Mark(NamedTuple):
    """A note on a metric, shown in its row."""

    severity: Severity
    text: str


MARKS: dict[Severity, tuple[str, Style]] = {
    "info": ("i", Style(color="blue", bold=True)),
    "warning": ("!", ALERT),
    "error": ("!!", Style(color="red", bold=True)),
}
"""Sign and style, by severity."""


class Glyphs(NamedTuple):
    """Characters that need UTF-8, or their stand-ins."""

    blocks: str
    full: str
    empty: str
    rule: str
    dot: str
    bullet: str
    more: str
    up: str
    down: str
    level: str


UNICODE = Glyphs("▁▂▃▄▅▆▇█", "━", "╌", "─", "·", "●", "…", "↗", "↘", "→")
ASCII = Glyphs("_.-:=+*#", "#", ".", "-", "|", "*", "..", "+", "-", "=")


def sparkline(values: Sequence[float], blocks: str = UNICODE.blocks) -> str:
    """One block per finite value, lowest to highest; a flat line is drawn in the middle."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    top = len(blocks) - 1
    span = high - low
    # Means of equal numbers differ in the last bit; that is not a change.
    if not 1e-9 * max(abs(low), abs(high)) < span < math.inf:
        return blocks[top // 2] * len(finite)
    scale = top / span
    return "".join([blocks[int((value - low) * scale + 0.5)] for value in finite])


def clock(seconds: float) -> str:
    """`0:07`, `12:34`, `1:02:03` or `2d 03:04`."""
    if not math.isfinite(seconds):
        return "?"
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24:02d}:{minute:02d}"
    if hours:
        return f"{hours}:{minute:02d}:{second:02d}"
    return f"{minute}:{second:02d}"


class Lines:
    """Ready lines as a rich renderable: never wrapped, and cropped by Live where they are too long."""

    def __init__(self, lines: list[list[Segment]]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, line in enumerate(self.lines):
            if number:
                yield Segment.line()
            yield from line


def activity_line(glyphs: Glyphs, description: str, done: float, total: float) -> list[Segment]:
    share = done / total if total > 0 else 0.0
    return [
        Segment(f" {description} ", BOLD),
        *bar(glyphs, share, 30),
        Segment(f" {done:g}/{total:g}", PLAIN),
    ]


def bar(glyphs: Glyphs, share: float, width: int, best: float = 0.0, style: Style = BAR) -> list[Segment]:
    """A bar filled to `share`, and more faintly to `best` where that is further."""
    width = max(0, width)
    full = _cells(share, width)
    faint = max(0, _cells(best, width) - full)
    return [
        Segment(glyphs.full * full, style),
        Segment(glyphs.full * faint, style + DIM),
        Segment(glyphs.empty * (width - full - faint), DIM),
    ]


def _cells(share: float, width: int) -> int:
    if math.isfinite(share):
        return round(min(1.0, max(0.0, share)) * width)
    return 0


def fit_words(text: str, width: int, more: str = UNICODE.more) -> str:
    """`text`, or as many of its whole words as fit; a single word that does not fit is cut."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(more) - 1
    kept = ""
    for word in text.split(" "):
        longer = f"{kept} {word}" if kept else word
        if cell_len(longer) > room:
            break
        kept = longer
    if kept:
        return f"{kept} {more}"
    if width > cell_len(more):
        return set_cell_size(text, max(0, width - cell_len(more))) + more
    return ""


def fit_items(items: Sequence[str], width: int, glyphs: Glyphs) -> str:
    """Items in a line, as many as fit, and how many more there are."""
    dot = f" {glyphs.dot} "
    whole = dot.join(items)
    if cell_len(whole) <= width:
        return whole
    for count in range(len(items) - 1, 0, -1):
        text = dot.join([*items[:count], f"{len(items) - count} more"])
        if cell_len(text) <= width:
            return text
    if items:
        return fit_words(items[0], width, glyphs.more)
    return ""


def can_redraw(console: Console) -> bool:
    return console.is_terminal and console.is_interactive and not console.is_dumb_terminal and not console.is_jupyter


def glyphs_for(console: Console) -> Glyphs:
    if console.encoding.lower().startswith("utf") and not console.legacy_windows:
        return UNICODE
    return ASCII


def printable(text: str) -> str:
    """Names come from users and files: no control character of theirs may reach the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)
