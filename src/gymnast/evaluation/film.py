"""What takes the pictures of an episode, and what is known when each is shown. Imports no torch: people play, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Caption:
    """What is known when a picture of an episode is shown: the past, and what the policy makes of it."""

    step: int
    """How many steps were taken before."""
    action: Any = None
    """What the policy chooses now; None in the last picture."""
    value: float | None = None
    """What it expects, in the learner's reward scale; None without a critic."""
    reward: float | None = None
    """Of the step before, in the env's own reward; None in the first picture."""
    ret: float = 0.0
    """The env's own rewards so far."""
    ending: str = ""
    """Text in the last picture: why the film ends."""


class Film(Protocol):
    """Takes the pictures of an episode as they are drawn, so that they need not all be kept."""

    @property
    def black(self) -> bool:
        """Whether no picture of the env so far has a single light pixel; text around it does not count."""

    def begin(self, fps: float) -> None:
        """A new episode; the game has `fps` frames per second."""

    def wants(self, frame: int) -> bool:
        """Whether this frame of the game is to be drawn; the last one of an episode always is."""

    def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
        """RGB [H, W, 3] uint8, and which frame of the game it shows; under frame skip some are left out."""


def enlarged(frame: np.ndarray, least: int) -> np.ndarray:
    """By the smallest whole factor that makes the longer side `least` pixels; players would blur a small picture."""
    longer = max(frame.shape[:2])
    if longer >= least:
        return frame
    factor = -(-least // longer)
    return np.kron(frame, np.ones((factor, factor, 1), np.uint8))
