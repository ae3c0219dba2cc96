"""One process under measurement: wall time, output with its moments, CPU, memory of the tree, and the neighbours' CPU.

It runs on a terminal (pty), as a user's does, so that nothing a user sees is switched off.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.02
PROPORTIONAL_SECONDS = 0.5
"""Between polls of the memory with shared pages counted once, each of which takes milliseconds."""
ORPHAN_SECONDS = 5.0
"""How long what a process leaves behind may take to end."""
_SET_CHILD_SUBREAPER = 36
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>()][0-9A-B]?)")


@dataclass(frozen=True)
class Process:
    """One measured process. Times are seconds from just before it was started."""

    exit_code: int
    wall: float
    started: float
    """Unix time of the start."""
    output: list[tuple[float, str]]
    cpu: float
    """CPU seconds of the whole tree."""
    foreign: float
    """Cores used by everything else, on average."""
    peak_mb: float | None
    proportional_mb: float | None = None
    """Peak of the tree's memory with pages that its processes share counted once (PSS)."""

    @property
    def text(self) -> str:
        """All output without colour codes."""
        return _ESCAPES.sub("", "".join(text for _, text in self.output)).replace("\r\n", "\n")

    @property
    def after_output(self) -> float:
        """Seconds from the last output to the exit."""
        return self.wall - (self.output[-1][0] if self.output else 0.0)

    def time_of(self, pattern: str) -> float | None:
        """When the last match of `pattern` was complete on the terminal."""
        seen, when = "", None
        for moment, text in self.output:
            seen = (seen + text)[-4000:]
            found = list(re.finditer(pattern, _ESCAPES.sub("", seen)))
            if found:
                when, seen = moment, ""
        return when

    def json_line(self) -> dict[str, Any]:
        """The last line that is a JSON object."""
        lines = [line for line in self.text.splitlines() if line.startswith("{")]
        if self.exit_code or not lines:
            raise SystemExit(f"The process failed (exit code {self.exit_code}):\n{self.text[-3000:]}")
        return json.loads(lines[-1])


def run_process(
    argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, memory: bool = False, timeout: float = 900.0
) -> Process:
    """Run `argv` on a terminal in an empty folder and measure it.

    `memory` polls the process tree every 20 ms, which costs a small machine some of its speed.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to this process, which counts their CPU
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    threads = {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}  # a setting of this shell must not decide a comparison
    environment = {key: value for key, value in os.environ.items() if key not in threads}
    environment |= {"TERM": "xterm-256color", **(env or {})}
    with tempfile.TemporaryDirectory(prefix="gymnast-bench-") as folder:
        others = set(_children())
        busy, own, started, begin = busy_seconds(), time.process_time(), time.time(), time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        output, polled, proportional = _watch(process.pid, master, begin, memory, timeout)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime + _orphans_cpu(others)
        foreign = busy_seconds() - busy - cpu - (time.process_time() - own)
        foreign = max(0.0, foreign / (time.perf_counter() - begin))
        os.close(master)
    peak = max(polled, usage.ru_maxrss / 1024) if memory else None  # maxrss: one process, but no gaps between polls
    return Process(process.returncode, wall, started, output, cpu, foreign, peak, proportional if memory else None)


def _watch(
    pid: int, master: int, begin: float, memory: bool, timeout: float
) -> tuple[list[tuple[float, str]], float, float]:
    """Read the terminal until the process has ended; the peaks of the tree's memory in MB beside it, resident and shared once."""
    output: list[tuple[float, str]] = []
    peak, proportional, looked, ended = 0.0, 0.0, begin, os.pidfd_open(pid)
    sources = [master, ended]
    try:
        while True:
            ready, _, _ = select.select(sources, [], [], POLL_SECONDS if memory else 1.0)
            if master in ready:
                try:
                    text = os.read(master, 65536).decode(errors="replace")
                    output.append((time.perf_counter() - begin, text))
                    ready = []  # read on: what was written before the end counts
                except OSError:  # every writer has closed the terminal
                    sources.remove(master)
            if memory:
                peak = max(peak, _tree_mb(pid, _resident))
                if time.perf_counter() - looked > PROPORTIONAL_SECONDS:
                    proportional, looked = max(proportional, _tree_mb(pid, _proportional)), time.perf_counter()
            if ended in ready:
                return output, peak, proportional
            if time.perf_counter() - begin > timeout:
                os.killpg(pid, signal.SIGKILL)
    finally:
        os.close(ended)


def _orphans_cpu(others: set[int]) -> float:
    """CPU seconds of what a process left behind: env workers, whose server its end does not wait for, and films.

    `others` are older children. What outlives the wait, such as a tracker at a server that hangs, joins them.
    """
    cpu, deadline = 0.0, time.perf_counter() + ORPHAN_SECONDS
    while time.perf_counter() < deadline and (orphans := [pid for pid in _children() if pid not in others]):
        for pid in orphans:
            ended, _, usage = os.wait4(pid, os.WNOHANG)
            cpu += (usage.ru_utime + usage.ru_stime) if ended else 0.0
        time.sleep(0.01)
    return cpu


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def _tree_mb(pid: int, kib: Callable[[Path], int]) -> float:
    """Memory of a process and all its descendants, in MB."""
    total, waiting = 0, [pid]
    while waiting:
        here = Path(f"/proc/{waiting.pop()}")
        try:
            total += kib(here)
            for task in (here / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, IndexError):  # it ended in between
            continue
    return total / 1024


def memory_mb(pid: int) -> float:
    """Memory of a process that runs and of its descendants now, shared pages counted once."""
    return _tree_mb(pid, _proportional)


def _resident(process: Path) -> int:
    return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def _proportional(process: Path) -> int:
    """A page that n processes have is an n-th of a page to each."""
    return int((process / "smaps_rollup").read_text().split("\nPss:")[1].split()[0])


def busy_seconds() -> float:
    """CPU seconds the whole machine has spent on anything, stolen time included."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
