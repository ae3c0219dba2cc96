"""A run of very many short iterations: does anything grow? `python benchmarks/soak.py --iterations 100000`.

The run is trained by the real command. Meanwhile its memory, open files and threads are read from /proc, and a reader
follows its metrics: every line must be whole, in order and readable at every moment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, machine, source, versions, write

ITERATION = 8
"""Env steps of one iteration: 2 envs, 4 steps."""
CONFIG = (
    *("CartPole-v1:ppo", "env.n_envs=2", "algo.n_steps=4", "algo.batch_size=8", "algo.n_epochs=1", "policy.hidden=[8]"),
    *("train.stop_when_solved=false", "eval.episodes=1", "eval.start_fraction=null", "env.time_limit=50"),
    # What a run does once at its end (a film takes 50 MB of libraries) is no growth from iteration to iteration.
    *("log.video=false", "log.rollouts=false", "log.report=false"),
)


@dataclass(frozen=True)
class Sample:
    """The process at one moment."""

    iteration: int
    seconds: float
    rss_mb: float
    files: int
    threads: int


class Follower:
    """Reads the metrics while they are written."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows, self.torn = path, 0, 0
        self._at, self._rest, self._last = 0, b"", 0

    def read(self) -> int:
        """Take in the new lines; the number of rows so far. An unreadable whole line is an error."""
        with self.path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.torn += bool(self._rest)
        for line in lines:
            row = json.loads(line)
            if row.get("amends") is not None:
                continue  # a late evaluation of an earlier row
            if row["env_steps"] != self._last + ITERATION:
                raise AssertionError(f"{row['env_steps']} env steps after {self._last}")
            self._last = int(row["env_steps"])
            self.rows += 1
        return self.rows


def look(pid: int, iteration: int, began: float) -> Sample:
    """Memory, files and threads of a process."""
    here = Path(f"/proc/{pid}")
    pages = int((here / "statm").read_text().split()[1])
    rss = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    files = len(os.listdir(here / "fd"))  # noqa: PTH208 - the names are not needed
    return Sample(iteration, round(time.monotonic() - began, 2), rss, files, len(os.listdir(here / "task")))  # noqa: PTH208


def soak(iterations: int, *, every: float = 0.25, extra: tuple[str, ...] = ()) -> list[Sample]:
    """Train and watch."""
    budget = iterations * ITERATION
    command = [str(Path(sys.executable).with_name("gymnast")), "train", *CONFIG, "-n", str(budget), "-q"]
    command += [f"eval.every={budget // 50}", f"train.checkpoint_every={budget // 100}", *extra]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        follower: Follower | None = None
        while process.poll() is None:
            time.sleep(every)
            if follower is None:
                found = list(Path(folder).glob("runs/[a-z]????/metrics.jsonl"))
                follower = Follower(found[0]) if found else None
            if follower is not None:
                try:
                    sample = look(process.pid, follower.read(), began)
                except (FileNotFoundError, IndexError, ProcessLookupError):
                    break  # it has just ended
                samples += [sample] if sample.rss_mb else []  # a process that has ended and was not waited for has none
        if process.wait() != 0 or follower is None:
            raise SystemExit(f"the run failed with exit code {process.returncode}")
        if follower.read() != iterations:
            raise SystemExit(f"{follower.rows} rows can be read, {iterations} were written")
    return samples


def summary(samples: list[Sample], warm_up: float = 0.25) -> dict[str, Any]:
    """Growth after the warm-up, in which buffers and histories fill."""
    last = samples[-1].iteration
    late = [one for one in samples if one.iteration >= warm_up * last]
    x = np.array([one.iteration for one in late], float)
    y = np.array([one.rss_mb for one in late])
    slope = float(np.polyfit(x, y, 1)[0]) if len(late) > 2 else float("nan")
    return {
        "iterations": last,
        "samples": len(samples),
        "seconds": samples[-1].seconds,
        "rss_mb": {
            "first": round(late[0].rss_mb, 2),
            "last": round(late[-1].rss_mb, 2),
            "max": round(float(y.max()), 2),
        },
        "rss_mb_per_10k_iterations": round(1e4 * slope, 4),
        "files": {"min": min(one.files for one in late), "max": max(one.files for one in late)},
        "threads": {"min": min(one.threads for one in late), "max": max(one.threads for one in late)},
    }


def main() -> None:
    """Soak, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=RESULTS / "soak.json")
    options = parser.parse_args()
    samples = soak(options.iterations)
    table = summary(samples)
    record = {"name": "soak", "source": source(), "machine": machine(), "versions": versions(), "config": list(CONFIG)}
    thin = samples[:: max(1, len(samples) // 200)]
    write(options.output, record | {"summary": table, "samples": [asdict(one) for one in thin]})
    for key, value in table.items():
        print(f"{key:<30} {value}")


if __name__ == "__main__":
    main()
