"""The picture of a bandit: one bar per arm, drawn without a window."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gymnast.envs.families.bandits.game import Game
from gymnast.later import Later

if TYPE_CHECKING:
    import pygame
else:
    pygame = Later("pygame")

SIZE = WIDTH, HEIGHT = 480, 320
TOP, BOTTOM, SIDE = 44, 244, 24
PAPER, INK, FAINT, BAR, BEST, PULLED, ESTIMATE = (
    (250, 250, 247),
    (40, 40, 46),
    (150, 150, 155),
    (196, 210, 224),
    (150, 200, 150),
    (228, 150, 60),
    (190, 40, 40),
)
NARROW = 26
"""Bars thinner than this have no numbers below them."""


def draw(game: Game, slot: int = 0) -> np.ndarray:
    """RGB frame [H, W, 3] of one slot: true means as bars (best one green), estimates as red lines, pulls below."""
    canvas = pygame.Surface(SIZE)
    canvas.fill(PAPER)
    means, pulls, last = game.means[slot], game.pulls[slot], int(game.last_arm[slot])
    low, high = _limits(means, bounded=game.rules.bounded)
    step = (WIDTH - 2 * SIDE) / len(means)
    zero = _height(max(low, 0.0), low, high)
    for arm, mean in enumerate(means):
        left, width = SIDE + arm * step, max(2, round(step * 0.7))
        top = _height(float(mean), low, high)
        colour = BEST if arm == int(means.argmax()) else BAR
        bar = pygame.Rect(round(left), min(top, zero), width, max(1, abs(zero - top)))
        pygame.draw.rect(canvas, colour, bar)
        if pulls[arm] and not game.rules.context:  # an average over contexts estimates nothing
            y = _height(float(game.sums[slot, arm] / game.counts[slot, arm]), low, high)
            pygame.draw.line(canvas, ESTIMATE, (bar.left, y), (bar.right - 1, y), 3)
        if arm == last:
            pygame.draw.rect(canvas, PULLED, bar.inflate(6, 6), 3)
        if step >= NARROW:
            _centred(canvas, f"{mean:.2f}", bar.centerx, BOTTOM + 8, FAINT)
            _centred(canvas, str(int(pulls[arm])), bar.centerx, BOTTOM + 26, INK)
    pygame.draw.line(canvas, INK, (SIDE, zero), (WIDTH - SIDE, zero), 1)
    _header(canvas, game, slot)
    return np.ascontiguousarray(pygame.surfarray.array3d(canvas).swapaxes(0, 1))


def _header(canvas: pygame.Surface, game: Game, slot: int) -> None:
    last = int(game.last_arm[slot])
    if last < 0:
        pulled = ""
    else:
        pulled = f"arm {last} paid {game.last_reward[slot]:.3g}"
    words = (
        f"pull {int(game.pulls[slot].sum())}",
        pulled,
        f"return {game.total[slot]:.4g}",
        f"regret {game.regret[slot]:.2f}",
    )
    for place, text in enumerate(words):
        canvas.blit(_text(text, INK), (SIDE + place * (WIDTH - 2 * SIDE) // 4, 10))
    legend = "green: best    red: estimate    orange: pulled    numbers: true mean, pulls"
    if game.rules.context:
        legend = "context " + "  ".join(f"{number:+.2f}" for number in game.context[slot, :8])
    canvas.blit(_text(legend, FAINT), (SIDE, HEIGHT - 22))


def _limits(means: np.ndarray, *, bounded: bool) -> tuple[float, float]:
    """The range of the axis: 0 to 1, or all means with room for noise."""
    if bounded:
        return (0.0, 1.0)
    return (min(-1.0, float(means.min()) - 0.5), max(1.0, float(means.max()) + 0.5))


def _height(value: float, low: float, high: float) -> int:
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return round(BOTTOM - share * (BOTTOM - TOP))


def _centred(canvas: pygame.Surface, text: str, x: int, y: int, colour: tuple[int, int, int]) -> None:
    image = _text(text, colour)
    canvas.blit(image, (x - image.get_width() // 2, y))


@cache
def _font() -> pygame.font.Font:
    pygame.font.init()
    return pygame.font.Font(None, 18)


def _text(text: str, colour: tuple[int, int, int]) -> pygame.Surface:
    return _font().render(text, True, colour)
