"""How a session looks in a window: the picture, a panel with what is known, and the keys on request."""

from __future__ import annotations

import numpy as np
import pygame

from gymnast.play import commands
from gymnast.play.players import HUMAN, POLICY
from gymnast.play.session import Session
from gymnast.play.view import View

Colour = tuple[int, int, int]

PAPER: Colour = (24, 26, 31)
PANEL: Colour = (33, 36, 43)
LINE: Colour = (58, 62, 72)
INK: Colour = (232, 234, 238)
FAINT: Colour = (147, 153, 166)
ACCENT: Colour = (102, 178, 255)
GOOD: Colour = (122, 204, 138)
WARM: Colour = (240, 180, 92)
MODE_COLOURS = {HUMAN: WARM, POLICY: ACCENT}

PANEL_WIDTH, MARGIN, ROW = 300, 18, 25
STRIP = 42
"""Height of the strip below the picture."""
LEAST_HEIGHT = 560
PICTURE_SIZE = 640
"""About how large the picture is at first."""
MOST_BARS = 9
"""Actions whose probabilities are shown, the likeliest ones; more do not fit."""
MOST_TERMS = 6


def first_size(picture: np.ndarray) -> tuple[int, int]:
    """Size of the window for the first picture."""
    height, width = picture.shape[:2]
    factor = PICTURE_SIZE / max(height, width)
    if factor > 1.5:
        factor = round(factor)  # small pictures are enlarged by whole factors, so that their pixels stay square
    return round(width * factor) + PANEL_WIDTH, max(round(height * factor) + STRIP, LEAST_HEIGHT)


class Fonts:
    """pygame's own font in some sizes: the same on every machine, and found without a search."""

    def __init__(self) -> None:
        self._known: dict[int, pygame.font.Font] = {}

    def image(self, text: str, size: int, colour: Colour, width: int | None = None) -> pygame.Surface:
        """The text, cut short with an ellipsis where it is wider than it may be."""
        if width is not None and self.width(text, size) > width:
            while text and self.width(f"{text}…", size) > width:
                text = text[:-1]
            text = f"{text}…"
        return self._font(size).render(text, True, colour)

    def width(self, text: str, size: int) -> int:
        """The width of a text in pixels."""
        return self._font(size).size(text)[0]

    def _font(self, size: int) -> pygame.font.Font:
        if size not in self._known:
            self._known[size] = pygame.font.Font(None, round(1.3 * size))
        return self._known[size]


class Screen:
    """Draws on the surface of a window."""

    def __init__(self, surface: pygame.Surface, title: str) -> None:
        self._surface, self._title = surface, title
        self._fonts = Fonts()

    def draw(self, session: Session, view: View, picture: np.ndarray, *, show_help: bool) -> None:
        """All of it, and show it."""
        surface = pygame.display.get_surface() or self._surface  # a resized window has a new one
        surface.fill(PAPER)
        width, height = surface.get_size()
        area = pygame.Rect(0, 0, max(1, width - PANEL_WIDTH), height)
        _draw_picture(surface, pygame.Rect(0, 0, area.width, max(1, height - STRIP)), picture)
        if show_help:
            _draw_help(surface, self._fonts, area, session)
        _draw_message(surface, self._fonts, area, session, view)
        panel = pygame.Rect(area.right, 0, PANEL_WIDTH, height)
        _Panel(surface, self._fonts, panel).draw(self._title, session, view)
        pygame.display.flip()


def _draw_picture(surface: pygame.Surface, area: pygame.Rect, picture: np.ndarray) -> None:
    height, width = picture.shape[:2]
    factor = min(area.width / width, area.height / height)
    image = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    if factor >= 1.5:
        scale = pygame.transform.scale
    else:
        scale = pygame.transform.smoothscale
    surface.blit(scale(image, size), ((area.width - size[0]) // 2, (area.height - size[1]) // 2))


def _draw_message(surface: pygame.Surface, fonts: Fonts, area: pygame.Rect, session: Session, view: View) -> None:
    """What the player should know at once, in the strip below the picture."""
    image = fonts.image(_message(session, view), 17, INK, area.width - 2 * MARGIN)
    left, top = (area.width - image.get_width()) // 2, area.bottom - (STRIP + image.get_height()) // 2
    surface.blit(image, (left, top))


def _message(session: Session, view: View) -> str:
    if view.outcome and view.last is not None:
        return f"{view.outcome} after {view.last.length:,} steps: return {view.last.ret:.4g}"
    if view.note:
        return f"{view.note}: press another key"
    if view.paused:
        return "paused: P continues, N makes one step"
    if view.waiting:
        meaning = {}
        if session.person:
            meaning = session.person.keys.meaning(session.labels)
        known = [_key_and_meaning(key, what) for key, what in list(meaning.items())[:4]]
        return f"waits for a key: {', '.join(known)}"
    return ""


def _key_and_meaning(key: str, what: str) -> str:
    """`Space: fire`; a key whose name says what it does has no label."""
    if what == key:
        return shown(key)
    return f"{shown(key)}: {what}"


def _draw_help(surface: pygame.Surface, fonts: Fonts, area: pygame.Rect, session: Session) -> None:
    """All keys, over the picture."""
    veil = pygame.Surface(area.size, pygame.SRCALPHA)
    veil.fill((*PAPER, 235))
    surface.blit(veil, area)
    meaning = {}
    if session.person:
        meaning = session.person.keys.meaning(session.labels)
    game = [(shown(key), what) for key, what in meaning.items()]
    taken = session.keys
    free = {command: commands.keys_of(command, taken) for command in commands.MEANING}
    ours = [
        (", ".join(shown(key) for key in keys), commands.MEANING[command]) for command, keys in free.items() if keys
    ]
    left = area.left + MARGIN
    for title, rows in (("Keys of the game", game), ("Keys of the window", ours)):
        keys_width = max((fonts.width(keys, 17) for keys, _ in rows), default=0) + 14
        top = area.top + MARGIN
        heading = fonts.image(title, 20, ACCENT)
        surface.blit(heading, (left, top))
        widest = heading.get_width()
        for keys, what in rows:
            top += ROW
            surface.blit(fonts.image(keys, 17, INK), (left, top + 8))
            words = fonts.image(what, 17, FAINT, area.right - MARGIN - left - keys_width)
            surface.blit(words, (left + keys_width, top + 8))
            widest = max(widest, keys_width + words.get_width())
        left += widest + 2 * MARGIN


class _Panel:
    """Writes rows from top to bottom; numbers are right-aligned, so they do not jump."""

    def __init__(self, surface: pygame.Surface, fonts: Fonts, area: pygame.Rect) -> None:
        self._surface, self._fonts, self._area = surface, fonts, area
        self._top = area.top + MARGIN

    def draw(self, title: str, session: Session, view: View) -> None:
        """Draw every row of the panel."""
        pygame.draw.rect(self._surface, PANEL, self._area)
        name, _, source = title.partition(", ")
        self._text(name, 19, INK)
        if source:
            self._text(source, 15, FAINT)
        self._mode(view)
        self._line()
        of = f" of {view.episodes}" if view.episodes else ""
        self._row("episode", f"{view.episode}{of}")
        self._row("step", f"{view.step:,}")
        self._row("return", f"{view.ret:.4g}")
        self._row("reward", "" if view.reward is None else f"{view.reward:+.4g}")
        for name, part in list(view.terms.items())[:MOST_TERMS]:
            self._row(f"    {name}", f"{part:+.4g}", FAINT)
        self._row("action", view.action)
        if POLICY in session.players:
            self._row("value", "" if view.value is None else f"{view.value:.4g}")
        self._bars(session, view)
        self._line()
        self._row("episodes played", str(view.played))
        self._row("mean return", "" if view.mean is None else f"{view.mean:.4g}")
        self._row("last return", "" if view.last is None else f"{view.last.ret:.4g}")
        self._row("last length", "" if view.last is None else f"{view.last.length:,}")
        other = "hand back" if view.mode == HUMAN else "take over"
        self._hint(f"H: keys    P: pause    Tab: {other}")

    def _mode(self, view: View) -> None:
        words = [f"speed ×{view.speed:g}"]
        if view.paused:
            words.append("paused")
        badge = self._fonts.image(view.mode.upper(), 17, PAPER)
        box = pygame.Rect(self._area.left + MARGIN, self._top, badge.get_width() + 18, badge.get_height() + 8)
        pygame.draw.rect(self._surface, MODE_COLOURS.get(view.mode, GOOD), box, border_radius=5)
        self._surface.blit(badge, (box.left + 9, box.top + 4))
        self._surface.blit(self._fonts.image("  ".join(words), 17, FAINT), (box.right + 12, box.top + 4))
        self._top = box.bottom + 12

    def _bars(self, session: Session, view: View) -> None:
        """What the policy would do next, in the order of the actions."""
        if not view.probabilities:
            return
        self._text("the policy's next action", 16, FAINT)
        likeliest = sorted(range(len(view.probabilities)), key=lambda i: -view.probabilities[i])[:MOST_BARS]
        left, width = self._area.left + MARGIN, PANEL_WIDTH - 2 * MARGIN
        for action in sorted(likeliest):
            share = view.probabilities[action]
            if action < len(session.labels):
                label = session.labels[action]
            else:
                label = f"action {action}"
            track = pygame.Rect(left, self._top, width, ROW - 5)
            pygame.draw.rect(self._surface, LINE, track, border_radius=3)
            pygame.draw.rect(
                self._surface, (58, 96, 138), (left, self._top, round(width * share), ROW - 5), border_radius=3
            )
            self._surface.blit(self._fonts.image(label, 16, INK, width - 60), (left + 6, self._top + 3))
            number = self._fonts.image(f"{share:.0%}", 16, INK)
            self._surface.blit(number, (track.right - number.get_width() - 6, self._top + 3))
            self._top += ROW

    def _row(self, name: str, value: str, colour: Colour = INK) -> None:
        left, right = self._area.left + MARGIN, self._area.right - MARGIN
        label = self._fonts.image(name, 17, FAINT)
        self._surface.blit(label, (left, self._top))
        number = self._fonts.image(value, 17, colour, right - left - label.get_width() - 10)
        self._surface.blit(number, (right - number.get_width(), self._top))
        self._top += ROW

    def _text(self, text: str, size: int, colour: Colour) -> None:
        image = self._fonts.image(text, size, colour, PANEL_WIDTH - 2 * MARGIN)
        self._surface.blit(image, (self._area.left + MARGIN, self._top))
        self._top += image.get_height() + 8

    def _line(self) -> None:
        left, right = self._area.left + MARGIN, self._area.right - MARGIN
        pygame.draw.line(self._surface, LINE, (left, self._top + 2), (right, self._top + 2))
        self._top += 12

    def _hint(self, text: str) -> None:
        image = self._fonts.image(text, 16, FAINT)
        top = max(self._top, self._area.bottom - image.get_height() - MARGIN)
        self._surface.blit(image, (self._area.left + MARGIN, top))


def shown(key: str) -> str:
    """A key as it is written on the keyboard: `Left`, `Esc`, `F1`, `A`, `W+A`."""
    if key == "escape":
        return "Esc"
    if len(key) > 1:
        return "+".join(part.capitalize() for part in key.split("+"))
    return key.upper()
