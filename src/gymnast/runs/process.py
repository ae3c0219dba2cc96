"""Which process is it, and on what: pids are given out again, so a process is known by its pid and when it began."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from pathlib import Path
from typing import Any


def process_start(pid: int) -> str | None:
    """When process `pid` began, as text to compare; None if there is no such process (or it is a zombie)."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()  # the name in parentheses may hold spaces
        if fields[0] in "ZXx":
            return None
        return fields[19]
    import subprocess

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=5, check=False, env={**os.environ, "LC_ALL": "C"}
        )
        return found.stdout.strip() or None
    return None


def process_alive(pid: int, start: str | None) -> bool:
    """Whether this very process still lives; a pid alone is not enough, the system gives it out again."""
    return start is not None and process_start(pid) == start


@functools.cache
def machine() -> str:
    """Names the space in which pids are unique: this boot of this host and, on Linux, this pid namespace."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()


def this_process() -> dict[str, Any]:
    """What a status or a lock says about its owner."""
    pid = os.getpid()
    return {"pid": pid, "process_start": process_start(pid), "host": platform.node(), "machine": machine()}


def cpu_name() -> str:
    """The model of the CPU in words."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed_version(package: str) -> str:
    """Of an installed package; `source` where it is not installed but imported from a checkout."""
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "source"
