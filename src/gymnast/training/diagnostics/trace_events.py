"""The trace file of a profiled run, in the Chrome trace-event format that ui.perfetto.dev opens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAIN = "MainThread"
COUNTERS = {
    "time/fps_now": ("env steps per second", "steps/s"),
    "rollout/return_mean": ("return", "rollouts"),
    "eval/return_mean": ("return of evaluations", "mean"),
    "sys/rss_mb": ("memory", "MB"),
}
"""Metrics drawn as curves: name of the track and of its value."""

_ITERATIONS, _STAGES = 1, 2  # tracks; further threads follow
_APART = 1e-4  # seconds by which the pieces of one loop overlap at least; a late report is much less


class Report(NamedTuple):
    """A stage said that it took `seconds` until `end`, on the clock of `time.perf_counter`."""

    stage: str
    end: float
    seconds: float
    thread: str


class Span(NamedTuple):
    """Where a report is drawn."""

    stage: str
    begin: float
    end: float
    is_sum: bool
    """Many short pieces that alternate with another stage's, drawn as one."""


@dataclass
class Section:
    """A part of the run: start-up, an iteration, or what follows the last one."""

    title: str
    begin: float
    iteration: int | None = None
    end: float = 0.0
    reports: list[Report] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)


def laid_out(reports: Iterable[Report], begin: float) -> list[Span]:
    """The reports of one thread as spans that do not overlap, none before `begin`.

    From the last to the first: each ends when it said so, or before the next one begins. Stages that alternate within a
    loop report their sums together at its end, and so come to lie one after the other.
    """
    spans: list[Span] = []
    limit = float("inf")
    for report in reversed(list(reports)):
        end = min(report.end, limit)
        moved = report.end - end > _APART
        if moved and spans:
            spans[-1] = spans[-1]._replace(is_sum=True)
        start = max(begin, end - report.seconds)
        if end > start:
            spans.append(Span(report.stage, start, end, moved))
            limit = start
    return spans[::-1]


class TraceEvents:
    """Turns sections into events; times are microseconds since `origin`."""

    def __init__(self, origin: float) -> None:
        self._origin = origin
        self._tracks = {MAIN: _STAGES}
        self._pid = os.getpid()

    def of(self, sections: Iterable[Section], title: str) -> Iterator[dict[str, Any]]:
        """All events of a run; `title` names its process."""
        for section in sections:
            yield from self._section(section)
        yield self._name("process_name", 0, title)
        yield from self._named_track(_ITERATIONS, "iterations")
        for thread, track in self._tracks.items():
            yield from self._named_track(track, "stages" if thread == MAIN else f"stages of {thread}")

    def _section(self, section: Section) -> Iterator[dict[str, Any]]:
        which = {} if section.iteration is None else {"iteration": section.iteration}
        yield self._span(_ITERATIONS, section.title, section.begin, section.end, which)
        for thread in dict.fromkeys(report.thread for report in section.reports):
            track = self._tracks.setdefault(thread, _STAGES + len(self._tracks))
            for span in laid_out([r for r in section.reports if r.thread == thread], section.begin):
                args: dict[str, int | str] = dict(which)
                if span.is_sum:
                    args["drawn as"] = "sum of the iteration"
                yield self._span(track, span.stage, span.begin, span.end, args)
        for metric, value in section.metrics.items():
            name, unit = COUNTERS[metric]
            yield {"ph": "C", "name": name, "pid": self._pid, "ts": self._us(section.end), "args": {unit: value}}

    def _span(self, track: int, name: str, begin: float, end: float, args: dict[str, Any]) -> dict[str, Any]:
        ts, until = self._us(begin), self._us(end)
        duration = round(until - ts, 3)  # between the rounded ends: neighbours touch and never overlap
        return {"ph": "X", "name": name, "pid": self._pid, "tid": track, "ts": ts, "dur": duration, "args": args}

    def _named_track(self, track: int, name: str) -> Iterator[dict[str, Any]]:
        yield self._name("thread_name", track, name)
        yield {"ph": "M", "name": "thread_sort_index", "pid": self._pid, "tid": track, "args": {"sort_index": track}}

    def _name(self, kind: str, track: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": self._pid, "tid": track, "args": {"name": name}}

    def _us(self, moment: float) -> float:
        return round((moment - self._origin) * 1e6, 3)


def trace_file(events: Iterable[dict[str, Any]], more: Iterable[bytes], about: dict[str, Any]) -> bytes:
    """The whole file; `more` are events that are JSON already."""
    lines = [json.dumps(event, separators=(",", ":"), allow_nan=False).encode() for event in events]
    body = b",\n".join([*lines, *more])
    return (
        b'{"displayTimeUnit":"ms","otherData":'
        + json.dumps(about).encode()
        + b',\n"traceEvents":[\n'
        + body
        + b"\n]}\n"
    )
