"""`gymnast train --profile` and `gymnast resume --profile` in processes of their own."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from launch import gymnast, start, stop, wait_for_rows

SIZES = ("env.n_envs=4", "algo.n_steps=16", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=3")


def spans(folder: Path) -> list[str]:
    """Names of the iterations' track."""
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    return [event["name"] for event in events if event["ph"] == "X" and event["tid"] == 1]


def test_a_profiled_run_prints_its_table_and_where_the_trace_is(folder: Path) -> None:
    """Start-up is counted from the start of the process; torch's profiler adds no words of its own."""
    result = gymnast("train", "CartPole-v1:ppo", *SIZES, "-n", 512, "--profile", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    (profile,) = folder.glob("runs/[a-z]????/profile")
    assert {path.name for path in profile.iterdir()} == {"stages.md", "trace.json"}
    for stage in ("start-up", "env", "policy", "learn", "eval", "checkpoint", "profiler", "other", "total"):
        assert re.search(rf"^ *{stage} +[\d.]+ +[\d.]+%", result.stdout, re.MULTILINE), stage
    for words in (str(profile.relative_to(folder) / "stages.md"), "trace.json", "https://ui.perfetto.dev"):
        assert words in result.stdout
    assert "since the process began" in (profile / "stages.md").read_text()
    assert spans(profile) == ["start-up", *(f"iteration {n}" for n in range(1, 9)), "end"]


def test_ctrl_c_leaves_a_profile_and_a_resume_makes_another(folder: Path) -> None:
    """Quiet runs say where the files are and nothing more about them; without the option nothing is written."""
    process = start("train", "CartPole-v1:ppo", *SIZES, "-n", 10**9, "--profile", "-q", cwd=folder)
    run = wait_for_rows(process, folder / "runs", 2)
    out, _ = stop(process, signal.SIGINT)
    assert process.returncode == 130
    assert str(Path("runs", run.name, "profile", "trace.json")) in out
    assert "start-up" not in out
    done = len(spans(run / "profile")) - 2
    assert spans(run / "profile")[-2:] == [f"iteration {done}", "end"]
    more = [(done + extra) * 64 for extra in (2, 4)]
    assert gymnast("resume", "@last", "-n", more[0], cwd=folder).returncode == 0
    assert not (run / "profile-2").exists()
    assert gymnast("resume", "@last", "-n", more[1], "--profile", cwd=folder).returncode == 0
    assert spans(run / "profile-2") == ["start-up", f"iteration {done + 3}", f"iteration {done + 4}", "end"]
