"""What a film says below its pictures: step, action, reward, return and value (STO-4)."""

from __future__ import annotations

import numpy as np

from gymnast.config.spec import EnvSpec
from gymnast.evaluation import lettering
from gymnast.evaluation.film import Caption, Film, enlarged
from gymnast.evaluation.labels import action_label

LEAST_WIDTH = 320
"""Pictures are enlarged by whole factors until the caption fits below them."""
PAPER, INK, SOFT = (16, 18, 22), (236, 238, 242), (150, 158, 170)
LETTER_SHARE, SMALLEST, LARGEST = 1 / 27, 17, 40
"""Height of letters as a share of the picture's width, and its ends in pixels."""


class Captioned:
    """A film with a strip of text below every picture, so that nothing of the game is hidden."""

    def __init__(self, film: Film, spec: EnvSpec, note: str = "") -> None:
        self._film, self._spec, self._black = film, spec, True
        self.note = note
        """Text at the right, such as the checkpoint that plays."""

    @property
    def black(self) -> bool:
        """Whether the env drew nothing."""
        return self._black

    def begin(self, fps: float) -> None:
        """A new episode."""
        self._film.begin(fps)

    def wants(self, frame: int) -> bool:
        """As the film does."""
        return self._film.wants(frame)

    def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
        """The picture with its caption."""
        self._black = self._black and not picture.any()
        picture = enlarged(picture, LEAST_WIDTH)
        strip = caption_strip(caption, picture.shape[1], self._spec, self.note)
        self._film.add(np.concatenate([picture, strip]), frame, caption)


def caption_strip(caption: Caption, width: int, spec: EnvSpec, note: str = "") -> np.ndarray:
    """Two lines of text, [H, width, 3]."""
    size = int(min(LARGEST, max(SMALLEST, width * LETTER_SHARE)))
    line, margin = lettering.letters(size).height, max(4, size // 3)
    strip = np.empty((2 * line + 3 * margin // 2, width, 3), np.uint8)
    strip[...] = PAPER
    write_caption(strip, caption, spec, margin, margin // 2, size)
    if note:
        lettering.write(strip, note, width - margin - lettering.width(note, size), margin // 2, size, SOFT)
    return strip


def write_caption(picture: np.ndarray, caption: Caption, spec: EnvSpec, left: int, top: int, size: int) -> None:
    """Step and action in one line, numbers in the next."""
    gap = 2 * max(4, size // 3)
    doing = caption.ending or action_label(caption.action, spec)
    x = lettering.write(picture, f"step {caption.step:,}", left, top, size, SOFT)
    lettering.write(picture, doing, x + gap, top, size, INK)
    below = top + lettering.letters(size).height + gap // 4
    x = left
    for name, number in _numbers(caption):
        x = lettering.write(picture, f"{name} ", x, below, size, SOFT)
        x = lettering.write(picture, number, x, below, size, INK) + gap


def _numbers(caption: Caption) -> list[tuple[str, str]]:
    numbers = []
    if caption.reward is not None:
        numbers.append(("reward", _short(caption.reward, sign=True)))
    numbers.append(("return", _short(caption.ret)))
    if caption.value is not None:
        numbers.append(("value", _short(caption.value)))
    return numbers


def _short(value: float, *, sign: bool = False) -> str:
    digits = 0 if value == round(value) or abs(value) >= 1000 else 2
    return f"{value:{'+' if sign else ''},.{digits}f}"
