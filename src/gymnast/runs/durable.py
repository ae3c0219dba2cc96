"""Folders and pointer files that are whole or not there, however a process ends: the ground under checkpoints."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import sys
from pathlib import Path

from gymnast.runs.process import process_start

_LEFTOVER = re.compile(r"\.tmp-([0-9]+)-(.+)-[0-9]+")
_counter = itertools.count()


def write_file(path: Path, data: bytes, sync: bool) -> None:
    """Write all of `data`, onto the disk itself with `sync`."""
    with path.open("wb", buffering=0) as file:
        view = memoryview(data)
        while view:  # a nearly full disk takes a part and refuses the rest
            view = view[file.write(view) :]
        if sync:
            os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with contextlib.suppress(OSError):  # some systems cannot sync folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def temporary_beside(checkpoints: Path) -> Path:
    """A name that says which process writes there, so that others can tell a leftover from work in progress."""
    pid = os.getpid()
    return checkpoints / f".tmp-{pid}-{start_of(pid)}-{next(_counter)}"


def start_of(pid: int) -> str:
    """When a process began, fit for a file name; another process with the same pid has another."""
    return re.sub(r"\W", "_", process_start(pid) or "gone")


def sweep(checkpoints: Path) -> None:
    """Remove what killed saves left behind."""
    for entry in os.scandir(checkpoints):
        match = _LEFTOVER.fullmatch(entry.name)
        if match and start_of(int(match[1])) != match[2]:
            _remove(Path(entry.path))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def point(checkpoints: Path, name: str, target: str, sync: bool) -> None:
    """Replace a pointer file and make it and its neighbours durable."""
    temporary = temporary_beside(checkpoints)
    try:
        write_file(temporary, f"{target}\n".encode(), sync)
        temporary.replace(checkpoints / name)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(checkpoints)


def move(temporary: Path, target: Path) -> None:
    """Put the finished folder in place; an older one of the same step is swapped out in the same moment."""
    if target.exists():
        if _swap(temporary, target):
            return  # `temporary` now holds the old one and is removed by the caller
        # Without an atomic swap there is a moment without this step; `load_latest` then takes the one before.
        aside = temporary_beside(target.parent)
        target.rename(aside)
        temporary.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        temporary.rename(target)


def _swap(first: Path, second: Path) -> bool:
    """Exchange two folders atomically where the system can (Linux, macOS)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None, use_errno=True)
        a, b = os.fsencode(first), os.fsencode(second)
        if sys.platform == "darwin":
            return bool(library.renamex_np(a, b, 2) == 0)  # RENAME_SWAP
        here = -100  # AT_FDCWD
        return bool(library.renameat2(here, a, here, b, 2) == 0)  # RENAME_EXCHANGE
    return False
