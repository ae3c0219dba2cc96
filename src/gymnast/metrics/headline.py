"""The upper part of the live table: how the run is doing, readable without experience."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.drawing import (
    ALERT,
    BAD,
    BAR,
    BOLD,
    DIM,
    GOOD,
    PLAIN,
    Glyphs,
    activity_line,
    bar,
    clock,
    fit_items,
    fit_words,
    sparkline,
)
from gymnast.metrics.goal import Goal
from gymnast.metrics.history import History
from gymnast.metrics.state import (
    Tone,
    best_score,
    budget_of,
    evaluated_score,
    score_course,
    state_of,
    training_score,
)
from gymnast.metrics.verdict import shown

Line = list[Segment]

SHARES = ("env", "policy", "learn", "eval", "checkpoint", "video", "other")
"""Stages of the split of time, in the order in which they are shown."""
WIDEST_BAR = 60
TONES: dict[Tone, Style] = {"plain": BOLD, "good": GOOD + BOLD, "warning": ALERT, "bad": BAD + BOLD}

_NAME = 9
_TILE = 11
_TREND = 8
_TAIL = 27
"""Text behind a bar."""
_ACTIVITY = 5
"""The line of an activity is the first to go; the activity then takes the place of the sentence."""


class Part(NamedTuple):
    """One line, and how soon a short terminal goes without it (0: never)."""

    line: Line
    spare: int = 0


class Headline:
    """Lines of a fixed number and order, from before the first row to the end."""

    def __init__(self, catalogue: Catalogue, glyphs: Glyphs, title: str, run_id: str) -> None:
        self.catalogue = catalogue
        self.glyphs = glyphs
        self.title = title
        self.run_id = run_id

    def lines(
        self,
        history: History,
        goal: Goal,
        settings: Mapping[str, float],
        width: int,
        room: int,
        activity: tuple[str, float, float] | None,
        *,
        over: bool = False,
    ) -> list[Line]:
        """At most `room` lines; the more room, the more of them. `over`: these stay on the screen."""
        parts = [
            Part(self._title(history, width)),
            Part(self._state(history, goal, width)),
            Part([] if activity is None else activity_line(self.glyphs, *activity), _ACTIVITY),
            *self._tiles(history, goal, width),
            Part([], 4),
            Part(self._goal(history, goal, width), 1),
            Part(self._budget(history, width, over=over)),
            Part(self._steps(history, width), 1),
            Part(self._time(history, width), 3),
            Part(self._settings(settings, width), 2),
        ]
        if over:
            del parts[2]
        while len(parts) > max(room, 2) and any(part.spare for part in parts):
            parts.remove(max(parts, key=lambda part: part.spare))
        if activity is not None and parts[2].spare != _ACTIVITY:
            parts[1] = Part(activity_line(self.glyphs, *activity))
        return [part.line for part in parts[: max(room, 1)]]

    def _title(self, history: History, width: int) -> Line:
        seconds, dot = history.last("time/seconds"), f" {self.glyphs.dot} "
        right = "" if seconds is None else f"{clock(seconds)} elapsed "
        name = f" {self.title}{dot + self.run_id if self.run_id else ''} "
        if cell_len(name + right) > width:
            return [Segment(fit_words(name, width, self.glyphs.more), BOLD)]
        return [Segment(set_cell_size(name, width - cell_len(right)), BOLD), Segment(right, DIM)]

    def _state(self, history: History, goal: Goal, width: int) -> Line:
        state = state_of(history, goal)
        sentence = fit_words(state.sentence, width - 3, self.glyphs.more)
        if not self.glyphs.bullet.isascii():
            return [Segment(f" {self.glyphs.bullet} ", TONES[state.tone]), Segment(sentence, TONES[state.tone])]
        return [Segment(f" {self.glyphs.bullet} {sentence}", TONES[state.tone])]

    def _tiles(self, history: History, goal: Goal, width: int) -> list[Part]:
        """What was scored, what is known of the env, and the trend: names above their values."""
        training, evaluated, best = training_score(history), evaluated_score(history), best_score(history)
        tiles = [
            ("training", training),
            ("evaluated", evaluated),
            ("best", None if best is None else best.value),
            ("target", goal.target),
            ("random", goal.random),
        ]
        if goal.perfect is not None and width >= 100:
            tiles.append(("perfect", goal.perfect))
        names, values = [Segment(f" {'score':<{_NAME - 1}}", DIM)], [Segment(" " * _NAME, PLAIN)]
        for name, score in tiles:
            # A number that would be cut is a wrong one: whole tiles are left out instead.
            if _NAME + _TILE * (len(names)) > width:
                break
            known = name in ("random", "target", "perfect")
            names.append(Segment(f"{name:<{_TILE}}", DIM))
            values.append(Segment(f"{_score(score):<{_TILE}}", PLAIN if known else BOLD))
        free = width - _NAME - _TILE * (len(names) - 1) - 3
        if free >= _TREND:
            names.append(Segment("trend", DIM))
            values += self._trend(history, min(free, 2 * _TREND))
        return [Part(names, 0), Part(values, 0)]

    def _trend(self, history: History, width: int) -> Line:
        points = [point.value for point in score_course(history)]
        if len(points) < 2:
            return [Segment("-", DIM)]
        step = max(1, len(points) // width)
        recent = points[-1] - points[max(0, len(points) - 1 - max(2, len(points) // 10))]
        span = max(points) - min(points)
        arrow, style = self.glyphs.level, DIM
        if abs(recent) > 0.02 * span:
            if recent > 0:
                arrow, style = (self.glyphs.up, GOOD)
            else:
                arrow, style = (self.glyphs.down, BAD)
        return [
            Segment(sparkline(points[::-step][::-1][-width:], self.glyphs.blocks), PLAIN),
            Segment(f" {arrow}", style),
        ]

    def _goal(self, history: History, goal: Goal, width: int) -> Line:
        """How far the score is on its way from a random policy's to the target."""
        evaluated = evaluated_score(history)
        now = training_score(history) if evaluated is None else evaluated
        if goal.target is None:
            return self._named("goal", [Segment("this env has no known threshold for solved", DIM)], width)
        first = next(iter(score_course(history)), None)
        if goal.way is not None or first is None:
            start = goal.random
        else:
            start = first.value
        if now is None or start is None or not math.isfinite(now) or goal.target <= start:
            return self._bar("goal", 0.0, 0.0, f"target {goal.target:g}", width)
        best = best_score(history)
        share = (now - start) / (goal.target - start)
        if best is None:
            farthest = share
        else:
            farthest = (best.value - start) / (goal.target - start)
        kind = "training" if evaluated is None else "evaluated"
        text = f"{_percent(share)} of the way, {kind}"
        if share >= 1:
            text = f"reached, {kind}"
        elif share < 0:
            text = f"below the start, {kind}"
        return self._bar("goal", share, farthest, text, width, GOOD if share >= 1 else BAR)

    def _budget(self, history: History, width: int, *, over: bool) -> Line:
        progress, eta = history.last("progress") or 0.0, history.last("time/eta")
        text = _percent(progress)
        if over:
            text += " used"
        elif eta is not None:
            text += f", ETA {clock(eta)}"
        return self._bar("budget", progress, 0.0, text, width)

    def _steps(self, history: History, width: int) -> Line:
        shown_as = {name: self.catalogue.format(name, history.last(name)) for name in _COUNTS}
        items = [f"{shown_as[name]} {name}" for name in ("vec_steps", "env_steps")]
        items.append(f"{shown_as['time/fps']} env_steps/s")
        budget = budget_of(history)
        if budget is not None:
            items[0] = f"{shown_as['vec_steps']} of {budget:,.0f} vec_steps"
        if not history.rows:
            items = ["-"]
        return self._named("steps", [Segment(fit_items(items, width - _NAME, self.glyphs), PLAIN)], width)

    def _time(self, history: History, width: int) -> Line:
        shares = [(name, history.last(f"time/{name}") or 0.0) for name in SHARES]
        items = [f"{name} {share:.0%}" for name, share in shares if share >= 0.005]
        return self._named("time", [Segment(fit_items(items, width - _NAME, self.glyphs) or "-", DIM)], width)

    def _settings(self, settings: Mapping[str, float], width: int) -> Line:
        items = [f"{name.partition('/')[2]} {value:g}" for name, value in settings.items()]
        return self._named("fixed", [Segment(fit_items(items, width - _NAME, self.glyphs) or "-", DIM)], width)

    def _bar(self, name: str, share: float, best: float, text: str, width: int, style: Style = BAR) -> Line:
        room = min(WIDEST_BAR, width - _NAME - 2 - max(_TAIL, cell_len(text)))
        return self._named(name, [*bar(self.glyphs, share, room, best, style), Segment(f"  {text}", PLAIN)], width)

    def _named(self, name: str, rest: Line, width: int) -> Line:
        return Segment.adjust_line_length([Segment(f" {name:<{_NAME - 1}}", DIM), *rest], width, pad=False)


_COUNTS = ("vec_steps", "env_steps", "time/fps")


def _score(value: float | None) -> str:
    """Narrower than a tile."""
    if value is None:
        return "-"
    text = shown(value)
    if len(text) < _TILE:
        return text
    return f"{value:.3g}"


def _percent(share: float) -> str:
    """Never 100% before it is so."""
    return f"{math.floor(100 * min(share, 1.0) + 1e-9)}%"
