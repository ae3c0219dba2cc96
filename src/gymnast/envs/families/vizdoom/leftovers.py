"""Where engines work, and what those leave behind that were killed."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import stat
import sys
import tempfile
import time
import zlib
from pathlib import Path

from gymnast.envs.families.vizdoom import launch

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the system keeps it
BLOCKS = "ViZDoom*"
"""Shared memory of an engine and its trainer: two queues and the screen."""
OLD_SECONDS = 60
"""An engine that is being started has its blocks before anybody has opened them."""


def launcher(engine: str) -> str:
    """The program that ViZDoom is told to run in place of its engine."""
    command = " ".join(map(shlex.quote, (sys.executable, "-IS", launch.__file__, str(_folder()), engine)))
    text = f'#!/bin/sh\nexec {command} "$@"\n'
    path = _folder() / f"engine-{zlib.crc32(text.encode()):08x}"
    if not path.exists():
        new = path.with_name(f"{path.name}-{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.chmod(stat.S_IRWXU)
        new.replace(path)
    return str(path)


@functools.cache
def _folder() -> Path:
    """The user's own folder for engines; the same one every time, so that nothing piles up."""
    path = Path(tempfile.gettempdir()) / f"gymnast-vizdoom-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=stat.S_IRWXU)
    found = path.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    if is_ours:
        return path
    return Path(tempfile.mkdtemp(prefix="gymnast-vizdoom-"))  # somebody else's: what lies there must not be run


@functools.cache
def sweep() -> None:
    """Free the shared memory of engines that were killed, half a megabyte each; once per process."""
    if not SHARED_MEMORY.is_dir():
        return
    old = [block for block in SHARED_MEMORY.glob(BLOCKS) if _is_old(block)]
    if not old:
        return
    in_use = _mapped()
    for block in old:
        if str(block) not in in_use:
            with contextlib.suppress(OSError):
                block.unlink()


def _is_old(block: Path) -> bool:
    try:
        found = block.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and time.time() - found.st_mtime > OLD_SECONDS


def _mapped() -> set[str]:
    """The blocks that some process of ours has open."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines = (process / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
            found |= {line.split(maxsplit=5)[-1] for line in lines if str(SHARED_MEMORY) in line}
    return found
