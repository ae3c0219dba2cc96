"""What every tracker receives, and what it must do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnast.metrics.histogram import Histogram


class TrackerError(Exception):
    """A tracker cannot be used as things are, in words; it may be tried again later."""


class TrackerRefusedError(TrackerError):
    """A tracker cannot work in this process, however often it is tried: for example, without a login."""


@dataclass(frozen=True)
class About:
    """The run, as trackers name and file it."""

    run_id: str
    folder: Path
    config: Mapping[str, Any]
    """Without secrets."""
    created: float
    """Seconds since 1970."""
    pid: int = 0
    """The process that trains; 0 where none does any more."""

    @property
    def name(self) -> str:
        """`ppo-k3v9x`."""
        return f"{self.config['algo']['id']}-{self.run_id}"

    @property
    def env_id(self) -> str:
        """Of the env that is trained on."""
        return str(self.config["env"]["id"])

    @property
    def group(self) -> str:
        """The config id, so that seeds of one preset lie together."""
        return str(self.config.get("name") or self.env_id)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The section `log` of the config; runs of earlier versions have fewer keys."""
        return self.config.get("log") or {}


@dataclass(frozen=True)
class Event:
    """Something that is sent in one piece, with the step it belongs to."""

    env_steps: int
    vec_steps: int
    values: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    video: Path | None = None
    resumed_at: int | None = None
    """Vec steps of the checkpoint that a later attempt goes on from here; what was sent of later steps is void."""
    seconds: float | None = None
    """Wall time of the run."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    state: str
    solved: bool = False
    reason: str | None = None


class Tracker(ABC):
    """Receives the events of one run in the order of the folder."""

    url: str | None = None
    """Where a person finds the run, once it is open."""

    def __init__(self, about: About) -> None:
        self.about = about

    @abstractmethod
    def open(self) -> int | None:
        """Connect. Returns how many events of this run have arrived so far, or None if the other side cannot tell."""

    @abstractmethod
    def write(self, event: Event, number: int) -> None:
        """Send an event; `number` counts those of the run from 0."""

    def flush(self) -> None:
        """What was written so far shall be visible soon."""
        return

    @abstractmethod
    def close(self, outcome: Outcome) -> None:
        """All is written. A TrackerError if not everything has arrived."""
