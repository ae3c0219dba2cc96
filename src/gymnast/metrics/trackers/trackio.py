"""Trackio: a SQLite file on this machine, or a Space at Hugging Face (TRACKIO_SPACE_ID). It keeps a spool of its own for that."""

from __future__ import annotations

from typing import Any

import trackio

from gymnast.metrics.histogram import Histogram
from gymnast.metrics.trackers.base import Event, Outcome, Tracker


class Trackio(Tracker):
    """One Trackio run per run id, in the project of the env."""

    def open(self) -> int | None:
        """Go on with the run of this id, or begin it."""
        about = self.about
        project = str(about.settings.get("project") or about.env_id).replace("/", "-")
        self._run: Any = trackio.init(
            project,
            name=about.name,
            group=about.group,
            config=dict(about.config),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self.url = f"trackio show --project {project}"
        return None

    def write(self, event: Event, number: int) -> None:
        """The step is vec_steps; env_steps and time are among the values."""
        values: dict[str, Any] = {"env_steps": event.env_steps, "vec_steps": event.vec_steps, **event.values}
        for name, histogram in event.histograms.items():
            values[name] = trackio.Histogram(np_histogram=_pair(histogram))
        if event.video is not None:
            values[f"video/{event.video.stem}"] = trackio.Video(event.video, format=_format(event.video.suffix))
        self._run.log(values, step=event.vec_steps)

    def close(self, outcome: Outcome) -> None:
        """Wait until everything is in the database."""
        self._run.finish()


def _pair(histogram: Histogram) -> tuple[list[float], list[float]]:
    return list(histogram.counts), list(histogram.edges)


def _format(suffix: str) -> Any:
    return suffix.removeprefix(".")
