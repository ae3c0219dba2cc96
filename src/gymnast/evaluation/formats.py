"""The video formats, by suffix; importable without torch, so that a wrong name is reported at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gymnast.errors import UsageError


@dataclass(frozen=True)
class Format:
    """A container and the codec in it."""

    container: str
    codec: str
    pixels: str
    options: dict[str, str] = field(default_factory=dict)
    """Of the codec."""
    container_options: dict[str, str] = field(default_factory=dict)
    quick: dict[str, str] = field(default_factory=dict)
    """Options of the codec for films that must be made fast."""


FORMATS = {
    # yuv420p plays everywhere (browsers, QuickTime, the Hub's preview).
    ".mp4": Format(
        "mp4",
        "libx264",
        "yuv420p",
        {"crf": "20", "preset": "veryfast"},
        {"movflags": "faststart"},
        quick={"crf": "23", "preset": "ultrafast"},
    ),
    ".webm": Format("webm", "libvpx-vp9", "yuv420p", {"crf": "30", "b": "0", "deadline": "realtime", "cpu-used": "8"}),
    # Whole pictures: sending only what changed compares numbers of colours, which mean others in the next palette.
    ".gif": Format("gif", "gif", "pal8", {"gifflags": "0"}),
}


def format_of(path: Path) -> Format:
    """What the suffix of a file asks for."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        *most, last = FORMATS
        what = f"'{path.suffix}'" if path.suffix else "no suffix"
        raise UsageError(
            f"The video file '{path}' has {what}: videos are written as {', '.join(most)} or {last}, as the suffix says."
        )
    return found
