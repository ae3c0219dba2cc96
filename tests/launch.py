"""The `gymnast` command in processes of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
from faults.server import the_server

COMMAND = str(Path(sys.executable).with_name("gymnast"))
TESTS = Path(__file__).parent
PATIENCE = 120.0
"""Seconds after which a process counts as hung; far above what any of them takes."""


def environment(**changes: str | None) -> dict[str, str]:
    """The environment of a user who has set nothing; `small_envs` can be imported. None removes a variable."""
    unset = ("GYMNAST_HOME", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    path = os.pathsep.join(filter(None, (str(TESTS), kept.get("PYTHONPATH"))))
    kept |= {"OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy", "PYTHONPATH": path}
    return {name: value for name, value in (kept | changes).items() if value is not None}


def gymnast(
    *arguments: Any, cwd: Path, answer: str | None = None, **changes: str | None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    It is a fork of a process that has imported everything, which saves the seconds that this takes. Where the environment is
    not the usual one, a process of its own reads it from the beginning.
    """
    if not changes:
        child = the_server().run(*arguments, cwd=cwd, environment=environment(), answer=answer)
        return subprocess.CompletedProcess([COMMAND, *map(str, arguments)], child.wait(), child.out, child.err)
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


def start(*arguments: Any, cwd: Path, **changes: str | None) -> subprocess.Popen[str]:
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


class Terminal:
    """A command on a pseudo-terminal, whose output is read all the time, as a real terminal does."""

    def __init__(self, *arguments: Any, cwd: Path, size: tuple[int, int] = (40, 120)) -> None:
        self.output = ""
        self._child = pexpect.spawn(
            COMMAND,
            [str(argument) for argument in arguments],
            cwd=str(cwd),
            env=environment(TERM="xterm-256color", LANG="C.UTF-8"),  # type: ignore[arg-type]
            dimensions=size,
            encoding="utf-8",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.output += self._child.read_nonblocking(4096, timeout=0.1)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                return

    def poll(self) -> int | None:
        """None while the output goes on."""
        return None if self._reader.is_alive() else 0

    def wait_for(self, text: str) -> None:
        """Until the text was printed."""
        until(lambda: text in self.output or self.poll() is not None)
        assert text in self.output, f"ended without {text!r}: {self.output[-2000:]}"

    def interrupt(self) -> None:
        """Ctrl-C, and wait until the process has taken it: two signals that wait together count as one."""
        self._child.sendintr()
        mask, status = 1 << (signal.SIGINT - 1), Path(f"/proc/{self._child.pid}/status")
        with contextlib.suppress(OSError):  # gone already
            until(lambda: not int(re.findall(r"ShdPnd:\s*(\w+)", status.read_text())[0], 16) & mask)
        time.sleep(0.1)

    def end(self) -> int | None:
        """Wait for the end; the exit code."""
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive(), f"still running: {self.output[-2000:]}"
        self._child.close()
        return self._child.exitstatus


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that will come."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_for_rows(process: subprocess.Popen[str] | Terminal, root: Path, count: int) -> Path:
    """Wait until a run in `root` has logged `count` iterations; its folder."""
    found: list[Path] = []

    def logged() -> bool:
        files = [path for path in root.glob("[a-z]????/metrics.jsonl") if path.read_bytes().count(b"\n") >= count]
        found.extend(path.parent for path in files)
        return bool(files) or process.poll() is not None

    until(logged)
    assert found, f"the process ended before it had logged {count} iterations"
    return found[0]


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Send a signal and wait for the end; what the process printed."""
    process.send_signal(number)
    return process.communicate(timeout=PATIENCE)
