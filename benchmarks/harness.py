"""What every benchmark shares: interleaved repeats, ratios, and the results file with config, versions and machine.

Repeats interleave (A B, B A, …), every round is saved at once, and a benchmark that was cut short goes on where it
stopped. Each run records how much of the machine other processes used: beside a busy neighbour a process with two
torch threads can be 17 times slower than itself (two equal SB3 runs), so runs wait for a quiet machine, and a disturbed
round is run again whatever its outcome.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from process import busy_seconds

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BUSY = 0.15
"""Cores used by other processes, on average over a run, above which the run is marked as disturbed."""
TRIES = 5
"""How often a disturbed round is run before it is kept, marked."""
_PACKAGES = (
    "torch",
    "numpy",
    "gymnasium",
    "gym",
    "gymnast",
    "stable-baselines3",
    "sb3-contrib",
    "cleanrl",
    "tensorboard",
    "ale-py",
    "trackio",
)


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
        busy = busy_seconds()
        time.sleep(1.0)
        if busy_seconds() - busy < BUSY:
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
    limits = [round(min(ratios), 4), round(max(ratios), 4)]
    return {"median": round(median(ratios), 4), "range": limits, "pairs": [round(one, 4) for one in ratios]}


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
    return "  ".join(f"{key}={value}" for key, value in shown.items())
