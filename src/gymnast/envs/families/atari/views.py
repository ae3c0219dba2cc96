"""What is seen of a game: stacked frames, the console's memory, or the objects in it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from gymnast.config.atari import AtariConfig
from gymnast.envs.families.atari.vector import pixel_space
from gymnast.errors import MissingPackageError


class View(Protocol):
    """Turns the emulator's state into observations."""

    space: spaces.Box
    frames: int
    """How many of the last frames of a step it looks at."""

    def begin(self) -> np.ndarray:
        """The first observation of an episode."""

    def look(self, frames_left: int) -> None:
        """At a frame, with so many to come in this step."""

    def observe(self) -> np.ndarray:
        """The observation after a step, in memory of its own."""

    def save(self) -> dict[str, Any]:
        """What it remembers between two steps."""

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `save` returned."""


def view_of(ale: Any, game: str, protocol: AtariConfig) -> View:
    """The one that `env.atari.obs` names."""
    if protocol.obs == "pixels":
        return Pixels(ale, protocol)
    if protocol.obs == "ram":
        return Ram(ale)
    return Objects(ale, game)


class Pixels:
    """Frames exactly as ALE's vector env makes them: brightness, the brighter of two frames, area interpolation, a stack."""

    def __init__(self, ale: Any, protocol: AtariConfig) -> None:
        self.space = pixel_space(protocol)
        height, width = ale.getScreenDims()
        self._screen = ale.getScreenGrayscale if protocol.gray else ale.getScreenRGB
        self._pool = protocol.max_pool
        if protocol.size == (height, width):
            self._size = None
        else:
            self._size = protocol.size[::-1]
        self._cv2 = _opencv() if self._size else None
        self._raw = np.zeros((2, height, width, *self.space.shape[3:]), np.uint8)
        """The last frame and the one before it; the last one is then pooled in place."""
        self._stack = np.zeros(self.space.shape, np.uint8)
        self.frames = 2

    def begin(self) -> np.ndarray:
        """Zeros before the first frame."""
        self._stack[...] = 0
        self._raw[1] = 0
        self.look(0)
        return self.observe()

    def look(self, frames_left: int) -> None:
        """Keep the frame if it is one of the last, which are pooled."""
        self._screen(self._raw[frames_left])

    def observe(self) -> np.ndarray:
        """The stack with the newest frame at its end. A game that ended within the step shows the frame before."""
        last = self._raw[0]
        if self._pool:
            np.maximum(last, self._raw[1], out=last)
        self._stack[:-1] = self._stack[1:]
        if self._cv2 is None:
            self._stack[-1] = last
        else:
            self._cv2.resize(last, self._size, dst=self._stack[-1], interpolation=self._cv2.INTER_AREA)
        return self._stack.copy()

    def save(self) -> dict[str, Any]:
        """The stack and the last frame; the one before it is never needed again."""
        return {"stack": self._stack.copy(), "last": self._raw[0].copy()}

    def load(self, state: dict[str, Any]) -> None:
        """The stack and the last frame."""
        self._stack[...], self._raw[0] = state["stack"], state["last"]
        self._raw[1] = 0


class Ram:
    """The 128 bytes of the console's memory."""

    frames = 0

    def __init__(self, ale: Any) -> None:
        self._ram = ale.getRAM
        self.space: spaces.Box = spaces.Box(0, 255, (ale.getRAMSize(),), np.uint8)

    def begin(self) -> np.ndarray:
        """The 128 bytes at the start of a game."""
        return self.observe()

    def look(self, frames_left: int) -> None:
        """Nothing is missed between steps."""

    def observe(self) -> np.ndarray:
        """The 128 bytes as they are now."""
        return np.asarray(self._ram())

    def save(self) -> dict[str, Any]:
        """Empty: the emulator's own state has the bytes."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Nothing to restore: the emulator's own state has the bytes."""


class Objects(Ram):
    """Positions and velocities, read from the memory by the game's own map."""

    def __init__(self, ale: Any, game: str) -> None:
        super().__init__(ale)
        from gymnast.envs.families.atari.objects import map_of

        self._map = map_of(game)
        self.space = self._map.space
        self._before: Any = None
        """What the map remembers of the last step."""

    def begin(self) -> np.ndarray:
        """The objects of the first frame, none of which has moved yet."""
        self._before = None
        return self.observe()

    def observe(self) -> np.ndarray:
        """Where things are, and how far they moved since the last step."""
        values, self._before = self._map.read(super().observe(), self._before)
        return values

    def save(self) -> dict[str, Any]:
        """What the velocities are counted from."""
        return {"before": self._before}

    def load(self, state: dict[str, Any]) -> None:
        """What the velocities are counted from."""
        self._before = state["before"]


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise MissingPackageError("Atari frames of another size than 210×160", "atari") from None
    cv2.setNumThreads(1)  # the envs are what runs side by side
    return cv2
