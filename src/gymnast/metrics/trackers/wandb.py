"""Weights & Biases: one W&B run per run id, also after a resume.

W&B counts the records of a run (its `_step`). We give each event its number among all events of the run, so after an
outage the server itself says which have arrived, and none is sent twice.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import numpy as np
import wandb

from gymnast.metrics.trackers.base import About, Event, Outcome, Tracker, TrackerError, TrackerRefusedError

INIT_SECONDS = 30.0
FINISH_SECONDS = 30.0
EXIT_CODES = {"finished": 0, "interrupted": 255}
"""What W&B shows as finished and killed; anything else is a failure."""


def project_of(about: About) -> str:
    """The project of a run: as configured, else the env's id in the letters that W&B allows."""
    named = about.settings.get("project") or os.environ.get("WANDB_PROJECT") or about.env_id
    return re.sub(r"[/\\#?%:]", "-", str(named))[:128]


class Wandb(Tracker):
    """Everything W&B keeps of a run comes from its folder: nothing is taken from this process or the user's terminal."""

    def __init__(self, about: About) -> None:
        super().__init__(about)
        self._run: Any = None

    def open(self) -> int | None:
        """Log in, and go on with the run of this id or begin it."""
        about = self.about
        try:
            self._run = wandb.init(
                project=project_of(about),
                entity=about.settings.get("entity") or None,
                id=about.run_id,
                name=about.name,
                group=about.group,
                tags=_tags(about),
                config=dict(about.config),
                resume="allow",
                dir=about.folder / "trackers",
                settings=_settings(about.pid),
            )
        except wandb.errors.UsageError as error:
            raise TrackerRefusedError(_in_words(error)) from error
        except Exception as error:  # the client has many, of its own and of the libraries below
            # Its service still holds the id of the run: without this, the next attempt would find the id in use.
            with contextlib.suppress(Exception):
                wandb.teardown(exit_code=1)
            raise TrackerError(_in_words(error)) from error
        self._run.define_metric("vec_steps")
        self._run.define_metric("*", step_metric="vec_steps")
        self.url = self._run.url
        if self._run.offline:
            return None
        return int(self._run.starting_step)

    def write(self, event: Event, number: int) -> None:
        """One record of W&B's history."""
        values: dict[str, Any] = {"env_steps": event.env_steps, "vec_steps": event.vec_steps, **event.values}
        for name, histogram in event.histograms.items():
            values[name] = wandb.Histogram(np_histogram=(np.array(histogram.counts), np.array(histogram.edges)))
        if event.video is not None:
            values[f"video/{event.video.stem}"] = wandb.Video(str(event.video), format=_format(event.video.suffix))
        with _failures_in_words():
            self._run.log(values, step=number)

    def close(self, outcome: Outcome) -> None:
        """Finish the run; a TrackerError if the server has not taken all of it in time."""
        with _failures_in_words():
            self._run.summary["solved"] = outcome.solved
            if outcome.reason:
                self._run.summary["stop_reason"] = outcome.reason
            self._run.finish(exit_code=EXIT_CODES.get(outcome.state, 1))


@contextlib.contextmanager
def _failures_in_words() -> Any:
    try:
        yield
    except Exception as error:
        raise TrackerError(_in_words(error)) from error


def _settings(pid: int) -> wandb.Settings:
    """No terminal output, no code, no git: only what the run's folder says goes out. System statistics are the trainer's."""
    settings = wandb.Settings(
        console="off",
        silent=True,
        x_disable_meta=True,
        disable_git=True,
        disable_code=True,
        disable_job_creation=True,
        x_save_requirements=False,
        init_timeout=INIT_SECONDS,
        login_timeout=INIT_SECONDS,
        finish_timeout=FINISH_SECONDS,
        finish_timeout_raises=True,
    )
    if pid:
        settings.x_stats_pid = pid
    return settings


def _tags(about: About) -> list[str]:
    """The algorithm, the env and those of the config; W&B takes at most 64 letters."""
    tags = [about.config["algo"]["id"], about.env_id, *about.settings.get("tags", [])]
    return list(dict.fromkeys(str(tag)[:64] for tag in tags))


def _format(suffix: str) -> Any:
    return suffix.removeprefix(".")


def _in_words(error: BaseException) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words[:300].rstrip(".")
