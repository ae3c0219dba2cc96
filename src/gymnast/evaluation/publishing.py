"""A film for sharing: 1920×1080 with a title, the game as large as fits, and its caption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gymnast.config.spec import EnvSpec
from gymnast.evaluation import lettering
from gymnast.evaluation.film import Caption, Film
from gymnast.evaluation.overlay import INK, PAPER, SOFT, write_caption
from gymnast.later import Later

if TYPE_CHECKING:
    import pygame
else:
    pygame = Later("pygame")

WIDTH, HEIGHT = 1920, 1080
MARGIN = 48
TITLE, SUBTITLE, TEXT = 72, 44, 48
"""Heights of letters."""
TOP, BOTTOM = 170, 150
"""Room for the title and for the caption."""
PIXELATED = 256
"""Pictures whose sides are smaller keep sharp pixels: they are enlarged by whole factors."""


class Published:
    """Lays every picture on a page with a title."""

    def __init__(self, film: Film, spec: EnvSpec, title: str, note: str = "") -> None:
        self._film, self._spec, self._title, self._black = film, spec, title, True
        self.note = note
        """Second line of the title, such as the checkpoint and its score."""

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
        """The picture on its page."""
        self._black = self._black and not picture.any()
        page = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        page[...] = PAPER
        lettering.write(page, self._title, MARGIN, 34, TITLE, INK)
        lettering.write(page, self.note, MARGIN, 106, SUBTITLE, SOFT)
        game = fitted(picture, WIDTH - 2 * MARGIN, HEIGHT - TOP - BOTTOM)
        top, left = TOP + (HEIGHT - TOP - BOTTOM - game.shape[0]) // 2, (WIDTH - game.shape[1]) // 2
        page[top : top + game.shape[0], left : left + game.shape[1]] = game
        write_caption(page, caption, self._spec, MARGIN, HEIGHT - BOTTOM + 24, TEXT)
        self._film.add(page, frame, caption)


def fitted(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """As large as fits, without changing its shape."""
    factor = min(width / picture.shape[1], height / picture.shape[0])
    if max(picture.shape[:2]) < PIXELATED and factor >= 1:
        whole = int(factor)
        return np.kron(picture, np.ones((whole, whole, 1), np.uint8))
    size = (max(1, round(picture.shape[1] * factor)), max(1, round(picture.shape[0] * factor)))
    surface = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
    return pygame.surfarray.array3d(pygame.transform.smoothscale(surface, size)).swapaxes(0, 1)
