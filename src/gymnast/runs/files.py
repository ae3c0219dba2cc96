"""Writing files that others may read at the same moment."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO


def now() -> str:
    """The time in UTC, ISO 8601, fine enough to order runs that start together."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def write_atomic(path: Path, data: str | bytes, *, sync: bool = False) -> None:
    """Replace `path` in one step: a reader sees the old or the new content, never half of it."""
    raw = data.encode() if isinstance(data, str) else data
    with replacing(path) as file:
        file.write(raw)
        if sync:
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when all of it is written; nothing is left of one that fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Work in a folder while no other process does; locks the folder itself, so no lock file stays behind."""
    descriptor = -1
    with contextlib.suppress(PermissionError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        if descriptor >= 0:
            flock(descriptor, alone=True, wait=True)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def flock(descriptor: int, *, alone: bool, wait: bool) -> None:
    """Lock an open file until it is closed; does nothing if the platform has no such locks."""
    try:
        import fcntl
    except ImportError:
        return
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
