"""Changes of images: colours, size, and what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.envs.wrappers.transforms import Transform
from gymnast.errors import ConfigError, MissingPackageError

MOST_CHANNELS = 4  # that OpenCV resizes at once


class Gray(Transform):
    """Brightness by ALE's formula, 0.2989 R + 0.5870 G + 0.1140 B rounded, in whole numbers so that no machine differs."""

    name = "gray"

    def __init__(self, space: spaces.Box) -> None:
        if space.dtype != np.uint8 or len(space.shape) != 3 or space.shape[-1] not in (1, 3):
            raise _misfit(self.name, "images of bytes [height, width, 3]", space)
        self._colours = space.shape[-1] == 3
        self.space = _image(space, space.shape[:2])

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """[..., H, W, 3] → [..., H, W]."""
        if not self._colours:
            return obs[..., 0]
        brightness = obs[..., 0] * np.uint32(2989)
        brightness += obs[..., 1] * np.uint32(5870)
        brightness += obs[..., 2] * np.uint32(1140)
        brightness += np.uint32(5000)
        brightness //= np.uint32(10000)
        return brightness.astype(np.uint8)


class Resize(Transform):
    """Area interpolation, which loses no thin line when an image shrinks."""

    name = "resize"

    def __init__(self, space: spaces.Box, width: int = 84, height: int = 84, keep_aspect: bool = False) -> None:
        if space.dtype not in (np.uint8, np.float32) or len(space.shape) not in (2, 3):
            raise _misfit(self.name, "images [height, width] or [height, width, channels]", space)
        self._cv2 = _opencv()
        old_height, old_width = space.shape[:2]
        self._inner = (width, height)
        if keep_aspect:
            scale = min(width / old_width, height / old_height)
            self._inner = (max(1, round(old_width * scale)), max(1, round(old_height * scale)))
        left, top = (width - self._inner[0]) // 2, (height - self._inner[1]) // 2
        self._window = (slice(top, top + self._inner[1]), slice(left, left + self._inner[0]))
        self._fills = self._inner == (width, height)
        self.space = _image(space, (height, width, *space.shape[2:]))

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """[..., H, W, C] → [..., height, width, C]."""
        shape = self.space.shape
        leading = obs.shape[: obs.ndim - len(shape)]
        out = np.zeros((*leading, *shape), self.space.dtype)
        for source, target in zip(obs.reshape(-1, *obs.shape[len(leading) :]), out.reshape(-1, *shape)):
            self._resize(source, target if self._fills else target[self._window])
        return out

    def _resize(self, source: np.ndarray, target: np.ndarray) -> None:
        if source.ndim == 2:
            target[...] = self._cv2.resize(source, self._inner, interpolation=self._cv2.INTER_AREA)
            return
        for first in range(0, source.shape[-1], MOST_CHANNELS):
            channels = slice(first, first + MOST_CHANNELS)
            small = self._cv2.resize(source[..., channels], self._inner, interpolation=self._cv2.INTER_AREA)
            target[..., channels] = small.reshape(target[..., channels].shape)  # one channel comes back without an axis


class Crop(Transform):
    """Cuts off the margins."""

    name = "crop"

    def __init__(self, space: spaces.Box, top: int = 0, bottom: int = 0, left: int = 0, right: int = 0) -> None:
        if len(space.shape) not in (2, 3):
            raise _misfit(self.name, "images [height, width] or [height, width, channels]", space)
        height, width = space.shape[:2]
        if top + bottom >= height or left + right >= width:
            raise ConfigError(f"Wrapper 'crop' would leave nothing of an image of {width}×{height} pixels.")
        self._window = _window(space, slice(top, height - bottom), slice(left, width - right))
        self.space = spaces.Box(space.low[self._window], space.high[self._window], dtype=space.dtype.type)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """A window of the image."""
        window: np.ndarray = obs[self._window]
        return window


class MaskRegion(Transform):
    """Paints rectangles of an image black."""

    name = "mask_region"

    def __init__(self, space: spaces.Box, rectangles: list[list[int]]) -> None:
        if len(space.shape) not in (2, 3):
            raise _misfit(self.name, "images [height, width] or [height, width, channels]", space)
        height, width = space.shape[:2]
        for x, y, w, h in rectangles:
            if w < 1 or h < 1 or x + w > width or y + h > height:
                raise ConfigError(
                    f"Wrapper 'mask_region' cannot black out [{x}, {y}, {w}, {h}]: a rectangle is [x, y, width, height] "
                    f"inside the image of {width}×{height} pixels."
                )
        self._windows = [_window(space, slice(y, y + h), slice(x, x + w)) for x, y, w, h in rectangles]
        self.space = spaces.Box(np.minimum(space.low, 0), np.maximum(space.high, 0), dtype=space.dtype.type)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """A copy with zeros."""
        obs = obs.copy()
        for window in self._windows:
            obs[window] = 0
        return obs


class Quantise(Transform):
    """Leaves a number of evenly spaced values between the bounds, the bounds among them."""

    name = "quantise"

    def __init__(self, space: spaces.Box, levels: int) -> None:
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all() and (space.high > space.low).all()):
            raise _misfit(self.name, "observations with finite bounds", space)
        self._levels, whole = levels, np.issubdtype(space.dtype, np.integer)
        # float32, as the rollout stores it: the values must not depend on where this runs.
        self._low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        self._width = high - self._low
        self.space = space if whole else spaces.Box(self._low, high)
        self._table: np.ndarray | None = None
        if space.dtype == np.uint8 and (space.low == 0).all() and (space.high == 255).all():
            values = np.arange(256) * levels // 256
            self._table = np.rint(values * (255 / (levels - 1))).astype(np.uint8)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """Equal shares of the range become one value each."""
        if self._table is not None:
            levels: np.ndarray = self._table[obs]
            return levels
        share = (obs.astype(np.float32) - self._low) / self._width
        level = np.clip(np.floor(share * np.float32(self._levels)), 0, self._levels - 1)
        value = self._low + level * (self._width / np.float32(self._levels - 1))
        whole = np.issubdtype(self.space.dtype, np.integer)
        if whole:
            value = np.rint(value)
        quantised: np.ndarray = value.astype(self.space.dtype)
        return quantised


def _misfit(name: str, needs: str, space: spaces.Space) -> ConfigError:
    return ConfigError(f"Wrapper '{name}' needs {needs}, this env has {space}.")


def _image(space: spaces.Box, shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(space.low.min(), space.high.max(), shape, space.dtype.type)


def _window(space: spaces.Box, rows: slice, columns: slice) -> tuple[Any, ...]:
    """Index of a rectangle in images [..., H, W] or [..., H, W, C]."""
    if len(space.shape) == 3:
        return (..., rows, columns, slice(None))
    return (..., rows, columns)


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise MissingPackageError("Wrapper 'resize'", "image") from None
    cv2.setNumThreads(1)  # the envs are what runs side by side
    return cv2
