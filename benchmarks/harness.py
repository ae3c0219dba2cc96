"""What every benchmark shares: running one process under measurement, interleaved repeats, and the results file.

Processes run on a terminal (pty), as a user's do, so that nothing a user sees is switched off. Repeats interleave
(A B, B A, …), every round is saved at once, and a benchmark that was cut short goes on where it stopped. Each run
records how much of the machine other processes used: beside a busy neighbour a peer with two torch threads was
measured 17 times slower than itself, so runs wait for a quiet machine and a disturbed round is run again, whatever
its outcome.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
POLL_SECONDS = 0.02
BUSY = 0.15
"""Cores used by other processes, on average over a run, above which the run is marked as disturbed."""
TRIES = 5
"""How often a disturbed round is run before it is kept, marked."""
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>()][0-9A-B]?)")
_PACKAGES = ("torch", "numpy", "gymnasium", "gym", "gymnast", "stable-baselines3", "cleanrl", "tensorboard")


@dataclass(frozen=True)
class Process:
    """One measured process. Times are seconds from just before it was started."""

    exit_code: int
    wall: float
    started: float
    """Unix time of the start."""
    output: list[tuple[float, str]]
    cpu: float
    foreign: float
    """Cores used by everything else, on average."""
    peak_mb: float | None

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
    """Run `argv` on a terminal in an empty folder and measure it. `memory` polls the process tree every 20 ms."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    threads = {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}  # a setting of this shell must not decide a comparison
    environment = {key: value for key, value in os.environ.items() if key not in threads}
    environment |= {"TERM": "xterm-256color", **(env or {})}
    with tempfile.TemporaryDirectory(prefix="gymnast-bench-") as folder:
        busy, own, started, begin = _busy_seconds(), time.process_time(), time.time(), time.perf_counter()
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
        output, polled = _watch(process.pid, master, begin, memory, timeout)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        foreign = _busy_seconds() - busy - (usage.ru_utime + usage.ru_stime) - (time.process_time() - own)
        os.close(master)
    peak = max(polled, usage.ru_maxrss / 1024) if memory else None  # maxrss: one process, but no gaps between polls
    cpu = usage.ru_utime + usage.ru_stime
    return Process(process.returncode, wall, started, output, cpu, max(0.0, foreign / wall), peak)


def _watch(pid: int, master: int, begin: float, memory: bool, timeout: float) -> tuple[list[tuple[float, str]], float]:
    """Read the terminal until the process has ended; the peak of the tree's resident memory in MB beside it."""
    output: list[tuple[float, str]] = []
    peak, ended = 0.0, os.pidfd_open(pid)
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
                peak = max(peak, _tree_mb(pid))
            if ended in ready:
                return output, peak
            if time.perf_counter() - begin > timeout:
                os.killpg(pid, signal.SIGKILL)
    finally:
        os.close(ended)


def _tree_mb(pid: int) -> float:
    """Resident memory of a process and all its descendants, in MB."""
    total, waiting = 0, [pid]
    while waiting:
        here = Path(f"/proc/{waiting.pop()}")
        try:
            total += int((here / "statm").read_text().split()[1])
            for task in (here / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, IndexError):  # it ended in between
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def _busy_seconds() -> float:
    """CPU seconds the whole machine has spent on anything, stolen time included."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A command line with the option every benchmark has."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--no-wait", action="store_true", help="do not insist on a quiet machine: for smoke tests only")
    return made


def machine() -> dict[str, Any]:
    """The machine in words."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = cpu.group(1).strip() if cpu else "unknown"
    return {"cpu": name, "cores": os.cpu_count(), "memory_gb": round(memory, 1), "system": " ".join(os.uname()[::2])}


def versions(python: str | Path = sys.executable) -> dict[str, str]:
    """Versions of what a contestant's interpreter has installed."""
    code = (
        "import json, platform, importlib.metadata as m\n"
        f"print(json.dumps({{'python': platform.python_version()}} | {{d.name: d.version for d in m.distributions() "
        f"if d.name.lower().replace('_', '-') in {_PACKAGES!r}}}))"
    )
    return json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)


def source() -> dict[str, str]:
    """Which code was measured: the commit, and a hash of the files themselves, since a checkout may have changes."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, check=False, text=True, capture_output=True
    )
    digest = hashlib.sha256()
    for folder in (ROOT / "src", ROOT / "benchmarks"):
        for path in sorted(path for kind in ("*.py", "*.yaml") for path in folder.rglob(kind)):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return {"commit": head.stdout.strip(), "files": digest.hexdigest()[:12]}


def interleave(
    name: str,
    config: dict[str, Any],
    contestants: Mapping[str, Callable[[int], dict[str, Any]]],
    rounds: int,
    *,
    quiet: bool = True,
) -> dict[str, Any]:
    """Run all contestants in turn, every other round in reverse order, saving after each round; returns the record.

    `quiet` waits for a quiet machine before each run and repeats a disturbed round.
    """
    path = RESULTS / f"{name}.json"
    record: dict[str, Any] = {
        "name": name,
        "complete": False,
        "config": config,
        "source": source(),
        "machine": machine(),
    }
    if path.exists():
        earlier = json.loads(path.read_text())
        if not earlier["complete"] and all(earlier[key] == record[key] for key in ("config", "source", "machine")):
            print(f"{name}: going on after {len(earlier['rounds'])} finished rounds")
            record = earlier
    record.setdefault("rounds", [])
    for index in range(len(record["rounds"]), rounds):
        order = list(contestants) if index % 2 == 0 else list(reversed(contestants))
        attempt, results = 0, dict[str, Any]()
        while attempt == 0 or (quiet and attempt < TRIES and disturbed(results)):
            attempt += 1
            for contestant in order:
                if quiet:
                    _wait_until_quiet()
                results[contestant] = contestants[contestant](index)
                print(f"  round {index + 1}/{rounds} {contestant}: {_short(results[contestant])}", flush=True)
        row = {"order": order, "attempt": attempt, **{contestant: results[contestant] for contestant in contestants}}
        record["rounds"].append(row)
        write(path, record)
    return record


def disturbed(results: Mapping[str, Any]) -> int:
    """How many of a round's runs had a busy neighbour."""
    return sum(isinstance(run, dict) and run.get("foreign", 0.0) > BUSY for run in results.values())


def _wait_until_quiet(patience: float = 120.0) -> None:
    """Wait until other processes leave the machine alone for a second, or until patience is at its end."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        busy = _busy_seconds()
        time.sleep(1.0)
        if _busy_seconds() - busy < BUSY:
            return


def finish(record: dict[str, Any], summary: dict[str, Any]) -> None:
    """Save the summary and print it."""
    noisy = sum(disturbed(row) > 0 for row in record["rounds"])
    record |= {"complete": True, "finished": datetime.now(UTC).isoformat(timespec="seconds"), "disturbed_rounds": noisy}
    record["summary"] = summary
    write(RESULTS / f"{record['name']}.json", record)
    for key, value in summary.items():
        print(f"{key:<40} {_short(value) if isinstance(value, dict) else value}")
    if noisy:
        print(f"warning: in {noisy} of {len(record['rounds'])} rounds other processes used over {BUSY:.0%} of a core")
    print(f"written to {(RESULTS / record['name']).relative_to(ROOT)}.json")


def ratio(record: dict[str, Any], key: str, ours: str, peer: str) -> dict[str, Any]:
    """`ours ÷ peer` per round, with the median and the range."""
    ratios = [row[ours][key] / row[peer][key] for row in record["rounds"]]
    return {
        "median": round(median(ratios), 4),
        "range": [round(min(ratios), 4), round(max(ratios), 4)],
        "of": len(ratios),
    }


def spread(record: dict[str, Any], key: str, contestant: str) -> dict[str, Any]:
    """Median and range of one contestant's values."""
    values = [row[contestant][key] for row in record["rounds"]]
    return {"median": round(median(values), 4), "range": [round(min(values), 4), round(max(values), 4)]}


def verdict(value: float, bar: str, *, at_least: float | None = None, at_most: float | None = None) -> str:
    """The bar in words and whether it is met."""
    met = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    return f"{bar}: {'met' if met else 'missed'} ({value:.3g})"


def write(path: Path, data: Any) -> None:
    """Replace a JSON file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
    temporary.replace(path)


def _short(values: Mapping[str, Any]) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in values.items()}
    return "  ".join(
        f"{key}={value}" for key, value in shown.items() if not isinstance(value, (dict, list)) or key == "range"
    )
