"""The `gymnast` command in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pexpect

COMMAND = str(Path(sys.executable).with_name("gymnast"))
TESTS = Path(__file__).parent
PATIENCE = 120.0
"""Seconds after which a process counts as hung; far above what any of them takes."""


def environment(**changes: str) -> dict[str, str]:
    """The environment of a user who has set nothing; `small_envs` can be imported."""
    unset = ("GYMNAST_HOME", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    path = os.pathsep.join(filter(None, (str(TESTS), kept.get("PYTHONPATH"))))
    return kept | {"OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy", "PYTHONPATH": path} | changes


def gymnast(*arguments: Any, cwd: Path, answer: str | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(**changes),
        input=answer,
        stdin=subprocess.DEVNULL if answer is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def start(*arguments: Any, cwd: Path, **changes: str) -> subprocess.Popen[str]:
    """Start a command and let it run."""
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def on_terminal(*arguments: Any, cwd: Path, size: tuple[int, int] = (40, 120)) -> pexpect.spawn:
    """Start a command on a pseudo-terminal."""
    changes = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    return pexpect.spawn(
        COMMAND,
        [str(argument) for argument in arguments],
        cwd=str(cwd),
        env=environment(**changes),  # type: ignore[arg-type]
        dimensions=size,
        encoding="utf-8",
        timeout=PATIENCE,
    )


def wait_for_rows(process: Any, root: Path, count: int) -> Path:
    """Wait until the only (or the last) run in `root` has logged `count` iterations; its folder."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        files = [path for path in root.glob("[a-z]*/metrics.jsonl") if path.read_bytes().count(b"\n") >= count]
        if files:
            return files[0].parent
        alive = process.poll() is None if isinstance(process, subprocess.Popen) else process.isalive()
        assert alive, f"the process ended before it had logged {count} iterations"
        time.sleep(0.005)
    raise AssertionError(f"{count} iterations were not logged within {PATIENCE:g} s")


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Send a signal and wait for the end; what the process printed."""
    process.send_signal(number)
    return process.communicate(timeout=PATIENCE)
