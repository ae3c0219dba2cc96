"""Text in pictures: letters drawn once by pygame's own font, then laid side by side with numpy.

pygame comes with gymnast because most envs draw with it, and its font with it. Letters are kept as arrays, because an env that
closes its window shuts pygame's fonts down.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gymnast.later import Later

if TYPE_CHECKING:
    import pygame
else:
    pygame = Later("pygame")

LETTERS = [chr(code) for code in (*range(0x21, 0x7F), *range(0xA1, 0x180))] + list("±×÷–—…·→←↑↓−≤≥°")
UNKNOWN = "?"


class Letters(NamedTuple):
    """All letters of one size."""

    shapes: dict[str, np.ndarray]
    """How opaque each pixel is: [height, width] uint8."""
    height: int
    space: int


@functools.cache
def letters(size: int) -> Letters:
    """The font at a height of so many pixels."""
    pygame.font.init()
    font = pygame.font.Font(None, size)
    shapes: dict[str, np.ndarray] = {}
    for letter in LETTERS:
        if font.metrics(letter)[0] is None or font.size(letter)[0] == 0:
            continue  # the font has no such letter, or nothing to draw for it
        surface = font.render(letter, True, (255, 255, 255))
        shapes[letter] = np.ascontiguousarray(pygame.surfarray.array_alpha(surface).T)
    return Letters(shapes, font.get_height(), font.size(" ")[0])


def width(text: str, size: int) -> int:
    """Pixels that a text takes."""
    return sum(_shape(letter, letters(size)).shape[1] for letter in text)


def write(picture: np.ndarray, text: str, x: int, y: int, size: int, colour: tuple[int, int, int]) -> int:
    """Write one line into a picture [H, W, 3] uint8, what does not fit is left out; gives where it ended."""
    font = letters(size)
    ink = np.array(colour, np.float32)
    for letter in text:
        shape = _shape(letter, font)
        part = picture[y : y + shape.shape[0], x : x + shape.shape[1]]
        if part.shape[:2] != shape.shape:
            break
        cover = shape[:, :, None] / np.float32(255)
        part[...] = (part + (ink - part) * cover).astype(np.uint8)
        x += shape.shape[1]
    return x


def _shape(letter: str, font: Letters) -> np.ndarray:
    if letter.isspace():
        return np.zeros((font.height, font.space), np.uint8)
    return font.shapes.get(letter, font.shapes[UNKNOWN])
