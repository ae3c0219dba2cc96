"""Which parts of an observation a wrapper changes."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gymnast.errors import ConfigError


def is_image(space: spaces.Space) -> bool:
    """Bytes in two axes, or three with channels."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def changed_parts(space: spaces.Space, name: str) -> dict[str, spaces.Box]:
    """The images of a Dict, or all its Boxes where it has none; an observation without parts is the part ''."""
    if isinstance(space, spaces.Box):
        return {"": space}
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    boxes = {key: part for key, part in parts.items() if isinstance(part, spaces.Box)}
    images = {key: part for key, part in boxes.items() if is_image(part)}
    if not boxes:
        raise ConfigError(f"Wrapper '{name}' needs Box observations, this env has {space}.")
    return images or boxes
