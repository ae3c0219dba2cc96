"""Videos for pages that show only pictures: an animated GIF, small enough to lie in an event file."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import av
from PIL import Image

WIDTH, FRAMES = 320, 150
"""At most."""


@dataclass(frozen=True)
class Gif:
    """An animated picture and its size."""

    data: bytes
    width: int
    height: int


def as_gif(video: Path) -> Gif:
    """At most FRAMES evenly spread frames, which play as long as the video does."""
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        total = stream.frames or sum(1 for _ in container.decode(stream))
        seconds = float(container.duration or 0) / av.time_base
    stride = max(1, -(-total // FRAMES))
    frames: list[Image.Image] = []
    with av.open(str(video)) as container:
        for number, frame in enumerate(container.decode(container.streams.video[0])):
            if number % stride == 0:
                frames.append(_small(frame.to_image()))
    if not frames:
        raise ValueError(f"'{video}' has no frames")
    out = io.BytesIO()
    pause = max(20, round(1000 * seconds / len(frames)))  # browsers slow anything faster down
    frames[0].save(out, format="GIF", save_all=True, append_images=frames[1:], duration=pause, loop=0)
    return Gif(out.getvalue(), *frames[0].size)


def _small(image: Image.Image) -> Image.Image:
    if image.width <= WIDTH:
        return image
    return image.resize((WIDTH, round(image.height * WIDTH / image.width)))
