"""The measuring itself: times, memory of the process tree, interleaving, and going on after an interruption."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import harness
import pytest
from process import run_process

MEGABYTES = 60


def test_times_and_output_of_a_process() -> None:
    code = "import time, sys; print('first'); time.sleep(0.3); print('{\"a\": 1}'); time.sleep(0.4); sys.exit(0)"
    process = run_process([sys.executable, "-u", "-c", code])
    assert process.exit_code == 0
    assert process.json_line() == {"a": 1}
    assert process.time_of('"a"') - process.time_of("first") > 0.25
    assert process.after_output > 0.35
    assert process.time_of("never") is None
    assert process.peak_mb is None


def test_a_process_has_a_terminal() -> None:
    code = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns)"
    assert run_process([sys.executable, "-c", code]).text.strip() == "True 140"


def test_memory_counts_the_children() -> None:
    child = f"import time; data = bytearray({MEGABYTES} * 2**20); time.sleep(0.5)"
    code = f"import subprocess, sys; data = bytearray({MEGABYTES} * 2**20); subprocess.run([sys.executable, '-c', {child!r}])"
    # Measured from a small process, as the benchmarks do: a child's peak includes what its parent had at the fork.
    folder = Path(harness.__file__).parent
    argv = [sys.executable, "-c", code]
    measure = f"from process import run_process; print(run_process({argv!r}, memory=True).peak_mb)"
    found = subprocess.run([sys.executable, "-c", measure], cwd=folder, capture_output=True, text=True, check=True)
    assert 2 * MEGABYTES < float(found.stdout) < 2 * MEGABYTES + 80


def test_cpu_counts_what_a_process_leaves_behind() -> None:
    busy = "import time\nwhile time.process_time() < 0.6: pass"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"  # ends at once
    process = run_process([sys.executable, "-c", code])
    assert process.exit_code == 0 and process.cpu > 0.6


def test_a_hanging_process_is_ended() -> None:
    process = run_process([sys.executable, "-c", "import time; time.sleep(100)"], timeout=0.5)
    assert process.exit_code < 0
    assert process.wall < 60


def test_a_failed_process_shows_its_output() -> None:
    process = run_process([sys.executable, "-c", "raise ValueError('the reason')"])
    with pytest.raises(SystemExit, match="the reason"):
        process.json_line()


def test_rounds_interleave_and_an_interrupted_benchmark_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    ran: list[str] = []

    def contestant(name: str, value: float, breaks_at: int | None = None) -> Any:
        def run(index: int) -> dict[str, Any]:
            if index == breaks_at:
                raise KeyboardInterrupt
            ran.append(f"{name}{index}")
            return {"seconds": value, "foreign": 0.0}

        return run

    ours, peer = contestant("a", 1.0), contestant("b", 2.0)
    with pytest.raises(KeyboardInterrupt):
        harness.interleave("x", {}, {"a": ours, "b": contestant("b", 2.0, breaks_at=2)}, 4, quiet=False)
    assert ran == ["a0", "b0", "b1", "a1", "a2"]
    record = harness.interleave("x", {}, {"a": ours, "b": peer}, 4, quiet=False)
    assert ran[5:] == ["a2", "b2", "b3", "a3"]
    assert harness.ratio(record, "seconds", "a", "b") == {"median": 0.5, "range": [0.5, 0.5], "pairs": [0.5] * 4}
    harness.interleave("x", {"another": "config"}, {"a": ours, "b": peer}, 1, quiet=False)
    assert ran[9:] == ["a0", "b0"]


def test_a_disturbed_round_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(harness, "_wait_until_quiet", lambda: None)
    loads = iter([0.9, 0.0, 0.0, 0.0])
    record = harness.interleave("x", {}, {"a": lambda i: {"foreign": next(loads)}, "b": lambda i: {"foreign": 0.0}}, 1)
    assert record["rounds"][0]["attempt"] == 2
    assert harness.disturbed(record["rounds"][0]) == 0
