"""What is seen: the engine draws the smallest picture that is no smaller than the one asked for, which is then shrunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.families.vizdoom.scenario import package
from gymnast.envs.families.vizdoom.settings import VizdoomSettings
from gymnast.errors import ConfigError, MissingPackageError

PREFIX = "RES_"


class Screen:
    """From the engine's buffer to the agent's picture [height, width, channels]."""

    def __init__(self, settings: VizdoomSettings) -> None:
        height, width = settings.screen
        channels = 1 if settings.gray else 3
        self.space = spaces.Box(0, 255, (height, width, channels), np.uint8)
        self.resolution, drawn = _smallest(height, width)
        self._shape = self.space.shape
        self._size = (width, height)
        self._cv2 = None if drawn == (height, width) else _opencv()

    def shown(self, buffer: np.ndarray) -> np.ndarray:
        """In memory of its own."""
        if self._cv2 is None:
            return buffer.reshape(self._shape)
        small: np.ndarray = self._cv2.resize(buffer, self._size, interpolation=self._cv2.INTER_AREA)
        return small.reshape(self._shape)


def _smallest(height: int, width: int) -> tuple[str, tuple[int, int]]:
    """The smallest of the engine's resolutions that loses nothing: of the same shape, where there is one."""
    sizes = {}
    for name in package().ScreenResolution.__members__:
        wide, _, high = name.removeprefix(PREFIX).partition("X")
        sizes[name] = (int(high), int(wide))
    large = {name: size for name, size in sizes.items() if size[0] >= height and size[1] >= width}
    if not large:
        raise ConfigError(f"env.kwargs.screen is {height}×{width}, but ViZDoom's largest picture is 1080×1920.")
    best = min(large, key=lambda name: (_distortion(large[name], height, width), large[name]))
    return best, large[best]


def _distortion(size: tuple[int, int], height: int, width: int) -> bool:
    """Whether the picture is much wider or narrower than asked for. Doom's own is 4 to 3."""
    asked, drawn = width / height, size[1] / size[0]
    return not 0.8 < asked / drawn < 1.25


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise MissingPackageError("A ViZDoom picture that the engine does not draw in its size", "image") from None
    cv2.setNumThreads(1)  # the envs are what runs side by side
    return cv2
