"""`--profile`: the same bits as without, a table that adds up, a trace that follows the rules of its format."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import signal
import threading
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runs_alike import PER_ITERATION, Watcher, assert_same_end, run, small

from gymnast.metrics.history import History
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.diagnostics import operators, profile
from gymnast.training.diagnostics.operators import Operators
from gymnast.training.diagnostics.profile import Profile
from gymnast.training.diagnostics.trace_events import Report, laid_out
from gymnast.training.keeping.result import TrainResult
from gymnast.training.train import Resume, resume_point, train

CARTPOLE = {"id": "CartPole-v1", "time_limit": 30}
STAGES_TRACK = 2
Event = dict[str, Any]


def profiled(resolved: Any, root: Path, watcher: Watcher | None = None) -> TrainResult:
    """Train with a profile."""
    result = train(resolved, root, reporter=watcher or Watcher(), profile=Profile())
    assert result is not None
    return result


def events_of(folder: Path) -> list[Event]:
    """The events of a trace, after holding them against the rules of the format."""
    content = json.loads((folder / "trace.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert content["displayTimeUnit"] == "ms"
    events: list[Event] = content["traceEvents"]
    for event in events:
        assert isinstance(event["name"], str) and event["name"], event
        assert isinstance(event["pid"], int), event
        if event["ph"] == "M":
            assert event["args"], event
            continue
        assert math.isfinite(event["ts"]) and event["ts"] >= 0, event
        if event["ph"] == "X":
            assert isinstance(event["tid"], int) and event["dur"] >= 0, event
        elif event["ph"] == "C":
            assert all(isinstance(value, (int, float)) for value in event["args"].values()), event
        else:
            assert event["ph"] in "sf" and "id" in event, event
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"} <= named
    return events


def spans(events: list[Event], track: int) -> list[Event]:
    """Of one track, in the order of time; none overlaps the next."""
    found = sorted((e for e in events if e["ph"] == "X" and e["tid"] == track), key=lambda event: event["ts"])
    for first, second in pairwise(found):
        assert first["ts"] + first["dur"] <= second["ts"] + 1e-3, (first, second)  # rounded to nanoseconds
    return found


def table_of(folder: Path) -> dict[str, list[str]]:
    """Cells of the table of stages by name."""
    text = (folder / "stages.md").read_text(encoding="utf-8").partition("\n\n| | |")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert tuple(rows[0]) == profile.HEADER
    return {row[0]: row[1:] for row in rows[2:]}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Six iterations of PPO with a profile."""
    return profiled(small("ppo", CARTPOLE), tmp_path_factory.mktemp("profiled")).run


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_a_profile_changes_no_bit(algorithm: str, tmp_path: Path) -> None:
    """Weights, moments, generators, env states and metrics are those of a run without."""
    resolved = small(algorithm, CARTPOLE, policy={"hidden": [16], "normalize_obs": True})
    with_profile = profiled(resolved, tmp_path).run
    assert (with_profile.folder / "profile" / "trace.json").exists()
    assert_same_end(with_profile, run(resolved, tmp_path).run)


def test_the_table_adds_up(trained: Run) -> None:
    """Stages and the rest are the wall time; every rollout was counted."""
    table = table_of(trained.folder / "profile")
    assert list(table) == ["start-up", "env", "policy", "learn", "eval", "checkpoint", "profiler", "other", "total"]
    seconds = {name: float(cells[0]) for name, cells in table.items()}
    total = seconds.pop("total")
    assert sum(seconds.values()) == pytest.approx(total, abs=0.001 * len(seconds))
    assert table["env"][2] == table["policy"][2] == table["learn"][2] == "6"
    assert float(table["learn"][3]) == pytest.approx(1e3 * seconds["learn"] / 6, abs=0.1)
    per_step = 1e6 * seconds["learn"] / (6 * PER_ITERATION)
    assert float(table["learn"][4]) == pytest.approx(per_step, abs=1e6 * 0.0005 / PER_ITERATION)
    text = (trained.folder / "profile" / "stages.md").read_text()
    for words in ("| env steps | 384 in 6 iterations |", "| device | cpu |", "torch 2.", "| all iterations |"):
        assert words in text


def test_every_stage_of_every_iteration_is_in_the_trace(trained: Run) -> None:
    """On one track, inside its iteration, with its number; and the curves beside them."""
    events = events_of(trained.folder / "profile")
    iterations = spans(events, 1)
    numbers = range(1, 7)
    assert [span["name"] for span in iterations] == ["start-up", *(f"iteration {n}" for n in numbers), "end"]
    stages = spans(events, STAGES_TRACK)
    for outer in iterations[1:-1]:
        inside = [span for span in stages if span["args"].get("iteration") == outer["args"]["iteration"]]
        assert {"env", "policy", "learn"} <= {span["name"] for span in inside}
        for span in inside:
            assert outer["ts"] <= span["ts"] + 1e-3
            assert span["ts"] + span["dur"] <= outer["ts"] + outer["dur"] + 1e-3
    sums = {span["name"] for span in stages if "drawn as" in span["args"]}
    assert sums == {"env", "policy"}
    table = table_of(trained.folder / "profile")
    for stage in ("env", "policy", "learn", "eval", "checkpoint", "profiler"):
        drawn = sum(span["dur"] for span in stages if span["name"] == stage)
        assert drawn / 1e6 == pytest.approx(float(table[stage][0]), abs=2e-3)
    curves = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            curves[event["name"]].append(event["args"])
    assert len(curves["env steps per second"]) == 6
    assert curves["return"] and len(curves["return of evaluations"]) == 3


def test_operators_of_a_few_iterations(trained: Run) -> None:
    """On the run's own clock: each lies inside one of the iterations 3 to 5, and learning has matrix products."""
    events = events_of(trained.folder / "profile")
    found = [event for event in events if event.get("cat") == "cpu_op"]
    around = {n: next(s for s in spans(events, 1) if s["args"].get("iteration") == n) for n in operators.ITERATIONS}
    slack = 500.0  # µs between two clocks of the system
    for span in around.values():
        begin, end = span["ts"] - slack, span["ts"] + span["dur"] + slack
        inside = [event for event in found if begin <= event["ts"] and event["ts"] + event["dur"] <= end]
        assert any(event["name"] == "aten::mm" for event in inside)
        found = [event for event in found if event not in inside]
    assert found == []


def test_a_run_that_is_interrupted_leaves_its_profile(tmp_path: Path) -> None:
    """At a boundary; and its continuation writes a profile of its own."""
    resolved = small("ppo", CARTPOLE)
    first = profiled(resolved, tmp_path, Watcher(stop_after=2))
    assert first.interrupted
    folder = first.run.folder
    assert [span["name"] for span in spans(events_of(folder / "profile"), 1)][1:] == [
        "iteration 1",
        "iteration 2",
        "end",
    ]
    assert "none: the run was too short" in (folder / "profile" / "stages.md").read_text()
    point, _ = resume_point(first.run)
    train(resolved, tmp_path, reporter=Watcher(), resume=Resume(first.run, point), profile=Profile())
    numbers = [span["args"].get("iteration") for span in spans(events_of(folder / "profile-2"), 1)]
    assert numbers == [None, 3, 4, 5, 6, None]
    assert "| 256 in 4 iterations |" in (folder / "profile-2" / "stages.md").read_text()
    assert_same_end(first.run, run(resolved, tmp_path).run)


class Impatient(Watcher):
    """Presses Ctrl-C twice within an iteration whose operators are being recorded."""

    def update(self, history: History, now: float, marks: Any = None) -> None:
        """Two signals when the next iteration begins to learn."""
        super().update(history, now, marks)
        if history.rows == 3:
            assert self.trainer is not None
            learner, inner = self.trainer.algorithm, self.trainer.algorithm.targets

            def targets(*arguments: Any) -> Any:
                for _ in range(2):
                    signal.raise_signal(signal.SIGINT)
                return inner(*arguments)

            learner.targets = targets  # type: ignore[method-assign]


def test_a_run_left_in_the_middle_of_an_iteration(tmp_path: Path) -> None:
    """Two Ctrl-C: the table and the trace are there, and the torn iteration says so."""
    with pytest.raises(KeyboardInterrupt):
        profiled(small("ppo", CARTPOLE), tmp_path, Impatient())
    (folder,) = tmp_path.glob("[a-z]????/profile")
    assert "learn" in table_of(folder)
    assert [span["name"] for span in spans(events_of(folder), 1)][-1] == "iteration 4 (unfinished)"


def test_a_run_in_which_nothing_was_learnt_leaves_nothing(tmp_path: Path) -> None:
    """It is discarded as without a profile."""

    class AtOnce(Watcher):
        def summary(self, *arguments: Any) -> None:
            super().summary(*arguments)
            assert self.trainer is not None

            def collapse(*arguments: Any) -> None:
                raise KeyboardInterrupt

            self.trainer.algorithm.targets = collapse  # type: ignore[method-assign, assignment]

    with pytest.raises(KeyboardInterrupt):
        profiled(small("ppo", CARTPOLE), tmp_path, AtOnce())
    assert not list(tmp_path.glob("[a-z]????"))


def test_a_full_disk_costs_only_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends as it would, with a warning."""

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(profile, "write_atomic", full)
    watcher = Watcher()
    result = profiled(small("ppo", CARTPOLE), tmp_path, watcher)
    assert result.stop_reason == "budget spent"
    assert result.run.status().state == "finished"
    (warning,) = watcher.warnings
    assert re.match(r"The profile of run \w{5} could not be written into '.*': No space left on device\.", warning)


def test_a_profiler_that_fails_costs_only_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said once; the stages are there."""
    monkeypatch.setattr(operators, "json", SimpleNamespace(loads=lambda text: {}))
    watcher = Watcher()
    folder = profiled(small("ppo", CARTPOLE), tmp_path, watcher).run.folder / "profile"
    monkeypatch.undo()
    assert len(watcher.warnings) == 1 and "Training goes on" in watcher.warnings[0]
    assert not [event for event in events_of(folder) if "cat" in event]
    assert "torch's profiler failed (KeyError: 'traceEvents')" in (folder / "stages.md").read_text()


def test_a_long_run_keeps_its_beginning_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace says which iterations are missing; the table knows them all."""
    monkeypatch.setattr(profile, "KEPT", 2)
    folder = profiled(small("ppo", CARTPOLE, env_steps=9 * PER_ITERATION), tmp_path).run.folder / "profile"
    titles = [span["name"] for span in spans(events_of(folder), 1)]
    kept = ["start-up", "iteration 1", "iteration 2", "iterations left out", "iteration 8", "iteration 9", "end"]
    assert titles == kept
    assert table_of(folder)["learn"][2] == "9"
    assert "the first 2 and the last 2 iterations" in (folder / "stages.md").read_text()


# ---- the parts -----------------------------------------------------------------------------------------------------


def report(stage: str, end: float, seconds: float) -> Report:
    """Of the main thread."""
    return Report(stage, end, seconds, "MainThread")


def test_sums_lie_one_after_the_other_before_what_follows() -> None:
    """Alternating stages report together; stages in a row stay where they were."""
    placed = laid_out([report("env", 7.0, 2.0), report("policy", 7.0, 3.0), report("learn", 9.0, 2.0)], 1.0)
    assert [(span.stage, span.begin, span.end, span.is_sum) for span in placed] == [
        ("env", 2.0, 4.0, True),
        ("policy", 4.0, 7.0, True),
        ("learn", 7.0, 9.0, False),
    ]


def test_more_time_than_there_was_is_cut() -> None:
    """Nothing begins before its iteration, and what has no room is not drawn."""
    placed = laid_out([report("a", 2.0, 5.0), report("b", 2.0, 0.5), report("c", 2.0, 5.0)], 1.0)
    assert [(span.stage, span.begin, span.end) for span in placed] == [("c", 1.0, 2.0)]


def test_stages_of_another_thread_have_a_track_of_their_own(tmp_path: Path) -> None:
    """A timer may be used from a thread beside the loop."""

    class Beside(Watcher):
        def update(self, history: History, now: float, marks: Any = None) -> None:
            super().update(history, now, marks)
            timer = self.timer
            thread = threading.Thread(target=lambda: timer.add("prefetch", 0.001), name="prefetcher")
            thread.start()
            thread.join()

        def attach(self, timer: StageTimer) -> None:
            self.timer = timer

    class Listening(Profile):
        def attach(self, trainer: Any, timer: StageTimer, reporter: Any) -> None:
            super().attach(trainer, timer, reporter)
            reporter.attach(timer)

    result = train(small("ppo", CARTPOLE), tmp_path, reporter=Beside(), profile=Listening())
    assert result is not None
    events = events_of(result.run.folder / "profile")
    assert {span["name"] for span in spans(events, STAGES_TRACK + 1)} == {"prefetch"}
    assert "stages of prefetcher" in {e["args"].get("name") for e in events if e["name"] == "thread_name"}


def gpu_trace(pid: int) -> Mapping[str, Any]:
    """As torch writes it for a CUDA device: a launch, its kernel on a stream, the arrow between them, and notes of its own."""
    meta = {"ph": "M", "ts": 1.0, "tid": 0}
    return {
        "baseTimeNanoseconds": 5_000_000_000,
        "traceEvents": [
            {**meta, "name": "process_name", "pid": pid, "args": {"name": "python"}},
            {**meta, "name": "process_labels", "pid": pid, "args": {"labels": "CPU"}},
            {**meta, "name": "thread_name", "pid": pid, "tid": 77, "args": {"name": "thread 77 (python)"}},
            {**meta, "name": "process_name", "pid": 0, "args": {"name": "python"}},
            {**meta, "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
            {**meta, "name": "process_labels", "pid": 1, "args": {"labels": "GPU 1"}},
            {**meta, "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": pid,
                "tid": 77,
                "ts": 10.0,
                "dur": 2.0,
            },
            {"ph": "s", "id": 4, "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": 77, "ts": 10.0},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "gemm",
                "pid": 0,
                "tid": 7,
                "ts": 15.0,
                "dur": 3.0,
                "args": {"grid": [1]},
            },
            {"ph": "f", "id": 4, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 15.0, "bp": "e"},
            {
                "ph": "X",
                "cat": "overhead",
                "name": "Activity Buffer Request",
                "pid": -1,
                "tid": 0,
                "ts": 9.0,
                "dur": 9.0,
            },
            {
                "ph": "X",
                "cat": "Trace",
                "name": "PyTorch Profiler (0)",
                "pid": "Spans",
                "tid": "x",
                "ts": 9.0,
                "dur": 9.0,
            },
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 20.0},
        ],
    }


def test_kernels_of_a_gpu_keep_their_device_stream_and_launch() -> None:
    """Moved to our clock; the second recording does not name the same things again."""
    found = Operators("cuda", 4_999_900.0, StageTimer(), pytest.fail)
    events = found._on_our_clock(dict(gpu_trace(os.getpid())))
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {
        ("thread_name", os.getpid(), 77): "operators, thread 77",
        ("process_name", 0, 0): "GPU 0",
        ("thread_name", 0, 7): "stream 7",
    }
    moved = [(e["ph"], e["name"], e["ts"]) for e in events if e["ph"] != "M"]
    kernel = ("X", "gemm", 115.0)
    assert moved == [("X", "cudaLaunchKernel", 110.0), ("s", "ac2g", 110.0), kernel, ("f", "ac2g", 115.0)]
    assert not [e for e in found._on_our_clock(dict(gpu_trace(os.getpid()))) if e["ph"] == "M"]


@pytest.mark.parametrize(("limit", "value"), [("LONGEST_SECONDS", 0.0), ("MAX_BYTES", 10)])
def test_operators_that_would_be_too_many(limit: str, value: float, tmp_path: Path, monkeypatch: Any) -> None:
    """Long iterations are not recorded, and a full room takes no more; the table says why."""
    monkeypatch.setattr(operators, limit, value)
    folder = profiled(small("ppo", CARTPOLE), tmp_path).run.folder / "profile"
    recorded = [event for event in events_of(folder) if event.get("cat") == "cpu_op"]
    text = (folder / "stages.md").read_text()
    if limit == "MAX_BYTES":
        assert recorded and "of iterations 3, which" in text and "filled the space" in text
    else:
        assert not recorded and "too many operators to record" in text
