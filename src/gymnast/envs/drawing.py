"""Pictures from envs that draw with SDL (pygame), on machines with a display and without."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gymnasium.envs.registration import EnvSpec

from gymnast.envs.families import family_of

DRIVER = "SDL_VIDEODRIVER"
NO_SIGNAL_HANDLERS = "SDL_NO_SIGNAL_HANDLERS"
"""SDL turns SIGTERM into a window event; without a window it is never read, and the process cannot be ended."""


def has_display() -> bool:
    """Whether windows can be opened here."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@contextmanager
def drawing(spec: EnvSpec | None) -> Iterator[None]:
    """Draw without a window.

    Without a display SDL finds its `offscreen` driver by itself, but first looks for a display and complains on stderr. Envs
    that are known to draw the same under the `dummy` driver are spared that. Others get SDL as it is: highway-env draws nothing
    under `dummy`.
    """
    os.environ.setdefault(NO_SIGNAL_HANDLERS, "1")
    family = None if spec is None else family_of(spec)
    if DRIVER in os.environ or has_display() or family is None or not family.draws_anywhere:
        yield
        return
    os.environ[DRIVER] = "dummy"
    try:
        yield
    finally:
        os.environ.pop(DRIVER, None)


def why_black() -> str:
    """` What` may be the reason for pictures without a single light pixel, or an empty string."""
    if os.environ.get(DRIVER) != "dummy":
        return ""
    return f" {DRIVER}=dummy is set, under which some envs draw nothing: unset it and record again."


def advice_for(error: BaseException) -> str:
    """` What to do` where SDL found no way to draw, or an empty string."""
    if "video device" not in str(error) and "video system" not in str(error):
        return ""
    return f" Without a display SDL needs a driver that draws into memory: set {DRIVER}=offscreen (or dummy)."
