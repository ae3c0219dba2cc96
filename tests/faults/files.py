"""Damage to files, as disks and careless hands do it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path


def flip(path: Path, generator: random.Random) -> None:
    """One bit, somewhere."""
    data = bytearray(path.read_bytes())
    data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    path.write_bytes(data)


def truncate(path: Path, generator: random.Random) -> None:
    """The end is missing."""
    data = path.read_bytes()
    path.write_bytes(data[: generator.randrange(len(data))])


def empty(path: Path, generator: random.Random) -> None:
    """Nothing is left."""
    path.write_bytes(b"")


def zero(path: Path, generator: random.Random) -> None:
    """The right length, but only zeros: what some file systems leave after a power cut."""
    path.write_bytes(bytes(path.stat().st_size))


def remove(path: Path, generator: random.Random) -> None:
    """Gone."""
    path.unlink()


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "bit flip": flip,
    "truncation": truncate,
    "empty file": empty,
    "zeros": zero,
    "missing file": remove,
}
