"""The events of a run, read from its folder in the order in which they were written, and what of them was sent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnast.metrics.histogram import Histogram
from gymnast.metrics.sinks.jsonl import AMENDS, NOT_METRICS, STEP, parse_row
from gymnast.metrics.sinks.tracked import FOLDER, HISTOGRAMS
from gymnast.metrics.trackers.base import Event
from gymnast.runs.reading import read_json
from gymnast.runs.store import Run

VIDEOS = (".mp4", ".webm", ".gif")


@dataclass
class Place:
    """How far a run's folder has been read."""

    metrics: int = 0
    """Bytes of the metrics file."""
    histograms: int = 0
    """Bytes of the spool of histograms."""
    videos: set[str] = field(default_factory=set)

    def after(self, mark: Mapping[str, Any]) -> None:
        """Move past the event that left this mark."""
        if "metrics" in mark:
            self.metrics, self.histograms = int(mark["metrics"]), int(mark["histograms"])
        elif "video" in mark:
            self.videos.add(str(mark["video"]))


class Journal:
    """What was sent to one tracker: a mark per event. What the other side has not got is taken back from its end."""

    def __init__(self, run: Run, tracker: str) -> None:
        folder = run.folder / FOLDER
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{tracker}.journal"
        self._marks = _json_lines(self._path)

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def place(self) -> Place:
        """Where sending goes on."""
        place = Place()
        for mark in self._marks:
            place.after(mark)
        return place

    def add(self, mark: dict[str, Any]) -> None:
        """One event more was sent."""
        self._marks.append(mark)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(mark) + "\n")

    def keep(self, number: int) -> None:
        """Only so many events have arrived: those behind them are sent again."""
        if number < len(self._marks):
            del self._marks[number:]
            self._path.write_text("".join(json.dumps(mark) + "\n" for mark in self._marks), encoding="utf-8")


class Feed:
    """What is new in a run's folder."""

    def __init__(self, run: Run, place: Place, *, videos: bool) -> None:
        config = run.config()
        self._run, self._place, self._videos = run, place, videos
        self._n_envs = int(config["env"]["n_envs"])

    def read(self) -> Iterator[tuple[Event, dict[str, Any]]]:
        """New events, each with the mark to leave in the journal once it is sent."""
        try:
            file = self._run.metrics_path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._place.metrics)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._place.metrics += len(line)
                row = parse_row(line)
                if row is not None:
                    event = self._event(row)
                    yield event, {"metrics": self._place.metrics, "histograms": self._place.histograms}
        if self._videos:
            yield from self._new_videos()

    def _event(self, row: dict[str, Any]) -> Event:
        env_steps, resumed = int(row[STEP]), row.get("resumed_from")
        values = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, (int, float)) and name not in (*NOT_METRICS, AMENDS)
        }
        # An amendment completes a row whose histograms went with it.
        histograms = {} if AMENDS in row else self._histograms_of(int(row["attempt"]), env_steps)
        return Event(
            env_steps,
            env_steps // self._n_envs,
            values,
            histograms,
            resumed_at=None if resumed is None else int(resumed) // self._n_envs,
            seconds=values.get("time/seconds"),
        )

    def _histograms_of(self, attempt: int, env_steps: int) -> dict[str, Histogram]:
        """Those of a row. They are written before it and in the same order, so the file is read once, alongside."""
        with contextlib.suppress(OSError), (self._run.folder / FOLDER / HISTOGRAMS).open("rb") as file:
            file.seek(self._place.histograms)
            for line in file:
                found = _json(line)
                if not line.endswith(b"\n") or found is None:
                    break
                at = (found["attempt"], found[STEP])
                if at > (attempt, env_steps):
                    break  # of a row that comes later
                self._place.histograms += len(line)
                if at == (attempt, env_steps):
                    return {name: Histogram.from_json(one) for name, one in found["histograms"].items()}
        return {}

    def _new_videos(self) -> Iterator[tuple[Event, dict[str, Any]]]:
        """Videos whose JSON says of which step they are; it is written after them, so they are whole."""
        for about in sorted(self._run.videos.glob("*.json")):
            step = _step_of(about)
            video = next((path for suffix in VIDEOS if (path := about.with_suffix(suffix)).is_file()), None)
            if step is None or video is None:
                continue
            key = f"{video.name}@{step}"  # a newer best video may have the name of the last one
            if key not in self._place.videos:
                self._place.videos.add(key)
                yield Event(step, step // self._n_envs, video=video), {"video": key}


def _step_of(about: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
        found = read_json(about)
        step = found.get("env_steps", found.get("step"))
        return None if step is None else int(step)
    return None


def _json_lines(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError), path.open("rb") as file:
        for line in file:
            mark = _json(line)
            if mark is None:
                break  # torn by a kill: what follows is sent again
            found.append(mark)
    return found


def _json(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
