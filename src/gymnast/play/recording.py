"""What keeps a session: films here, datasets in `gymnast.play.datasets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gymnast.envs.vector import EndedEpisode
from gymnast.evaluation.stage import Stage
from gymnast.evaluation.video import VideoWriter

Draw = Callable[[], np.ndarray]
"""Draws what the env shows now, once however often it is asked."""


@dataclass(frozen=True)
class Start:
    """The beginning of an episode. One that was cut short is followed by the next without an end."""

    stage: Stage
    """The env, after its reset: `stage.row` holds the first observation."""
    seed: int
    fps: float
    """Frames of the game per second."""
    picture: Draw


@dataclass(frozen=True)
class Step:
    """One step, after it was made."""

    stage: Stage
    """`stage.row` holds the outcome; after the end of an episode its observation is not part of it any more."""
    actions: np.ndarray
    """[1, ...]"""
    given: list[Any]
    """What the bare env was given, frame by frame."""
    mode: str
    """Who acted."""
    reward: float
    """The env's own."""
    ended: EndedEpisode | None
    frame: int
    """Frames of the game since the episode began."""
    picture: Draw
    terms: Mapping[str, float]
    """What the reward is made of, where the env says so."""
    value: float | None
    """What the policy expects from where the step led; None without a policy that has a critic, and at the end."""


class Recorder(Protocol):
    """Gets everything that is played. Pauses and waiting are not steps."""

    def attach(self, stage: Stage) -> None:
        """Before the first episode is begun: the place to listen to the bare env."""

    def begin(self, start: Start) -> None:
        """Begin the record of an episode."""

    def step(self, step: Step) -> None:
        """One step of it."""


class Filming:
    """Writes the picture before the first step and the one after every step, at the pace of the game."""

    def __init__(self, video: VideoWriter) -> None:
        self._video = video

    def attach(self, stage: Stage) -> None:
        """Films look at pictures alone."""

    def begin(self, start: Start) -> None:
        """Film the first picture of an episode."""
        self._video.begin(start.fps)
        self._video.add(start.picture(), 0)

    def step(self, step: Step) -> None:
        """The picture that the step led to."""
        self._video.add(step.picture(), step.frame)
