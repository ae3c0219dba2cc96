"""Play in a window of pygame. It holds no state of the game: keys go to the session, and its view is drawn."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pygame

from gymnast.envs.drawing import has_display
from gymnast.errors import UsageError
from gymnast.play import commands
from gymnast.play.drawing import Screen, first_size
from gymnast.play.session import Session
from gymnast.play.view import Result

NO_WINDOW = ("dummy", "offscreen")
"""SDL's drivers that draw into memory."""
ADVICE = "Use --headless to play in the terminal; with --record FILE.mp4 it writes a film."
ACCELERATION = "SDL_FRAMEBUFFER_ACCELERATION"
"""Whether SDL shows a window's picture by OpenGL. A simulator that draws by OpenGL in this process (MuJoCo) takes its context
away, and the window stays black."""
NAMES = {
    "return": "enter",
    "left shift": "shift",
    "right shift": "shift",
    "left ctrl": "ctrl",
    "right ctrl": "ctrl",
    "left alt": "alt",
    "right alt": "alt",
    "[+]": "+",
    "[-]": "-",
    "[enter]": "enter",
}
"""pygame's names of keys, and ours."""
REPEAT_AFTER, REPEAT_EVERY = 350, 110
"""Milliseconds: a key that is held is one turn, and after a while many."""
REPEATED = (commands.STEP, commands.FASTER, commands.SLOWER)
"""Commands that a held key repeats; a pause should not flicker."""


def check_display() -> None:
    """A clear sentence where no window can be opened, before anything is loaded."""
    if not has_display():
        raise UsageError(f"There is no display for a window here. {ADVICE}")


def play_in_window(session: Session, title: str, on_episode: Callable[[Result], None]) -> None:
    """Show a session until it is over; report each episode when it ends."""
    with _window(title, first_size(session.picture())) as surface:
        _Front(session, Screen(surface, title), on_episode).run()


@contextmanager
def _window(title: str, size: tuple[int, int]) -> Iterator[pygame.Surface]:
    """A window, and nothing of pygame left behind."""
    before = os.environ.get(ACCELERATION)
    os.environ.setdefault(ACCELERATION, "0")
    try:
        pygame.display.init()
        driver = pygame.display.get_driver()
        if driver in NO_WINDOW:
            raise UsageError(f"No window can be opened here: SDL draws with its driver '{driver}'. {ADVICE}")
        pygame.font.init()
        pygame.display.set_caption(title)
        surface = pygame.display.set_mode(size, pygame.RESIZABLE)
        pygame.key.set_repeat(REPEAT_AFTER, REPEAT_EVERY)
        yield surface
    except pygame.error as error:
        raise UsageError(f"No window can be opened here ({error}). {ADVICE}") from None
    finally:
        pygame.quit()
        if before is None:
            os.environ.pop(ACCELERATION, None)


class _Front:
    """Passes events on, and draws what changed."""

    def __init__(self, session: Session, screen: Screen, on_episode: Callable[[Result], None]) -> None:
        self._session, self._screen, self._tell = session, screen, on_episode
        self._down: set[str] = set()
        self._help = False
        self._stale = True

    def run(self) -> None:
        """Run until the user quits or all episodes are played."""
        session = self._session
        shown = None
        while not session.over:
            wait = max(1, round(1000 * session.idle_for(time.monotonic())))
            event = pygame.event.wait(wait)
            while event.type != pygame.NOEVENT:
                self._take(event)
                event = pygame.event.poll()
            told = len(session.results)
            session.advance(time.monotonic())
            for result in session.results[told:]:
                self._tell(result)
            view, picture = session.view(), session.picture()
            if self._stale or shown != (view, id(picture)):
                self._screen.draw(session, view, picture, show_help=self._help)
                shown, self._stale = (view, id(picture)), False

    def _take(self, event: pygame.event.Event) -> None:
        session = self._session
        if event.type == pygame.QUIT:
            session.command(commands.QUIT)
        elif event.type == pygame.KEYDOWN:
            self._key_down(_name(event))
        elif event.type == pygame.KEYUP:
            key = _name(event)
            self._down.discard(key)
            session.release(key)
        elif event.type == pygame.WINDOWFOCUSLOST:  # keys that go up now are not told
            self._down.clear()
            session.release()
        elif event.type in (pygame.VIDEORESIZE, pygame.WINDOWEXPOSED):
            self._stale = True

    def _key_down(self, key: str) -> None:
        session = self._session
        repeated = key in self._down
        self._down.add(key)
        if key in session.keys:
            session.press(key)
            return
        command = commands.KEYS.get(key)
        if command is None or (repeated and command not in REPEATED):
            return
        if command == commands.HELP:
            self._help = not self._help
            self._stale = True
        else:
            session.command(command)


def _name(event: pygame.event.Event) -> str:
    """Our name of a key; `+` wherever the keyboard has it."""
    if getattr(event, "unicode", "") == "+":
        return "+"
    name = pygame.key.name(event.key)
    return NAMES.get(name, name)
