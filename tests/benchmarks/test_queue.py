"""The queue loses nothing when it is killed. `gymnast` itself is replaced by a tiny script; the queue is the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FAKE = """
import json, os, sys, time
from pathlib import Path
verb, target, *rest = sys.argv[1:]
folder = Path(rest[rest.index("--runs-dir") + 1])
with (Path(__file__).parent / "calls.txt").open("a") as calls:
    calls.write(f"{verb} {target} {os.getpid()} {' '.join(rest)}\\n")
with (Path(__file__).parent / "threads.txt").open("a") as threads:
    threads.write(os.environ.get("OMP_NUM_THREADS", "none") + "\\n")
def status(run, state):
    text = json.dumps({"state": state, "env_steps": 100, "wall_seconds": 0.5, "solved": True, "stop_reason": "solved"})
    (folder / run / "status.json").write_text(text)
if verb == "train":
    (folder / "abcde").mkdir(parents=True)
    (folder / "abcde" / "config.json").write_text(
        '{"env": {"vectorization": "inprocess"}, "eval": {"deterministic": false}}'
    )
    status("abcde", "running")
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
    rows = [{"env_steps": 50, "eval/return_mean": None}, {"env_steps": 75, "eval/return_mean": None}]
    rows += [{"env_steps": 100, "eval/return_mean": 12.0}, {"env_steps": 50, "amends": 50, "eval/return_mean": 7.5}]
    (folder / "abcde" / "metrics.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
    status("abcde", "finished")
elif verb == "resume":
    if os.environ.get("FAKE_RESUME") == "fails":
        sys.exit("no checkpoint")
    status(target, "finished")
else:
    seed = int(rest[rest.index("--seed") + 1])
    print(json.dumps({"mean": 400.0 + seed % 1000, "std": 0.0, "episodes": 100, "deterministic": True}))
"""

ENV_FILE = "id: CartPole-v1\nvariants:\n  ppo:\n    algo: {{learning_rate: {rate}}}\n    train: {{env_steps: 1000}}\n"


class Queue:
    """A queue of four jobs in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results.jsonl"
        (folder / "fake.py").write_text(FAKE)
        (folder / "own.yaml").write_text(ENV_FILE.format(rate="1e-3"))
        (folder / "queue.yaml").write_text('seeds: 0-3\njobs:\n  - {config: "own.yaml:ppo", bar: 400}\n')

    def start(self, *options: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--queue", "queue.yaml"]
        command += ["--results", "results.jsonl", "--runs-dir", "work", *options]
        command += ["--command", f"{sys.executable} {self.folder / 'fake.py'}"]
        environment = {**os.environ, **env}
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True)

    def finish(self, *options: str, **env: str) -> tuple[int, str]:
        process = self.start(*options, **env)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def seeds(self) -> list[int]:
        """Seeds with an outcome, in the order they were finished; torn lines left out."""
        found = []
        for line in self.results.read_text().splitlines() if self.results.exists() else []:
            try:
                found.append(json.loads(line)["seed"])
            except ValueError:
                continue
        return found

    def calls(self, verb: str) -> list[list[str]]:
        path = self.folder / "calls.txt"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if line[0] == verb]


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


def wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_kill_between_jobs_repeats_nothing(queue: Queue) -> None:
    process = queue.start(FAKE_SECONDS="0.3")
    wait_for(lambda: len(queue.seeds()) >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = queue.seeds()
    code, output = queue.finish()
    assert code == 0, output
    assert sorted(queue.seeds()) == [0, 1, 2, 3]
    assert queue.seeds()[: len(done)] == done
    trained = [call[call.index("--seed") + 1] for call in queue.calls("train")]
    assert sorted(trained) == ["0", "1", "2", "3"]  # a run that was cut short is resumed, never trained twice
    assert "4/4" in output


def test_kill_inside_a_job_resumes_its_run_and_leaves_no_orphan(queue: Queue) -> None:
    process = queue.start(FAKE_SECONDS="100")
    wait_for(lambda: list(queue.folder.glob("work/*/abcde/status.json")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    (_, _, pid, *_) = queue.calls("train")[0]
    wait_for(lambda: not alive(pid), 10)
    assert queue.finish()[0] == 0
    assert len(queue.calls("resume")) == 1
    outcomes = [json.loads(line) for line in queue.results.read_text().splitlines()]
    assert [outcome["resumed"] for outcome in outcomes] == [True, False, False, False]


def test_a_run_that_cannot_be_resumed_is_trained_again(queue: Queue) -> None:
    process = queue.start(FAKE_SECONDS="100")
    wait_for(lambda: list(queue.folder.glob("work/*/abcde/status.json")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    code, output = queue.finish(FAKE_RESUME="fails")
    assert code == 0, output
    assert "starting again" in output
    assert queue.seeds() == [0, 1, 2, 3]


def test_a_torn_line_counts_as_not_done(queue: Queue) -> None:
    assert queue.finish()[0] == 0
    lines = queue.results.read_bytes().splitlines(keepends=True)
    queue.results.write_bytes(b"".join(lines[:3]) + lines[3][:40])
    code, output = queue.finish()
    assert code == 0, output
    assert queue.seeds() == [0, 1, 2, 3]
    assert len(queue.calls("train")) == 4  # its run was finished: only the evaluation is repeated
    assert len(queue.calls("eval")) == 5


def test_a_changed_config_is_run_again_and_the_old_outcomes_do_not_count(queue: Queue) -> None:
    assert queue.finish()[0] == 0
    assert queue.finish()[0] == 0
    assert len(queue.calls("train")) == 4
    (queue.folder / "own.yaml").write_text(ENV_FILE.format(rate="2e-3"))
    code, output = queue.finish("--report")
    assert code == 1
    assert "0/4" in output
    assert queue.finish()[0] == 0
    assert len(queue.calls("train")) == 8


def test_a_failing_job_does_not_stop_the_others(queue: Queue) -> None:
    (queue.folder / "fake.py").write_text(
        FAKE.replace('if verb == "train":', 'if "2" in rest: sys.exit("broken")\nif verb == "train":')
    )
    code, output = queue.finish("--jobs", "2")
    assert code == 1
    assert "seed 2: FAILED" in output
    assert "broken" in output or "train ended with 1" in output
    assert sorted(queue.seeds()) == [0, 1, 3]
    assert "3/4" in output


def test_scores_below_the_bar_are_told(queue: Queue) -> None:
    (queue.folder / "queue.yaml").write_text('seeds: 0-3\njobs:\n  - {config: "own.yaml:ppo", bar: 402}\n')
    code, output = queue.finish()
    assert code == 1
    assert "400 (bar 402) BELOW THE BAR" in output
    assert "not all at the bar" in output


def test_two_queues_in_one_folder_are_refused(queue: Queue) -> None:
    process = queue.start(FAKE_SECONDS="100")
    wait_for(lambda: queue.calls("train"))
    refused = subprocess.run(process.args, cwd=queue.folder, capture_output=True, text=True, timeout=60, check=False)
    process.kill()
    process.wait()
    assert refused.returncode == 1
    assert "Another queue is running" in refused.stderr


def test_outcome_holds_the_evaluation_curve_and_jobs_one_thread(queue: Queue) -> None:
    assert queue.finish("--jobs", "4")[0] == 0
    outcomes = [json.loads(line) for line in queue.results.read_text().splitlines()]
    assert [outcome["curve"] for outcome in outcomes] == [[[50, 7.5], [100, 12.0]]] * 4
    assert {outcome["vectorization"] for outcome in outcomes} == {"inprocess"}
    assert (queue.folder / "threads.txt").read_text().split() == ["1"] * 8  # four trainings, four evaluations


def test_entries_may_have_seeds_of_their_own_and_no_bar(queue: Queue) -> None:
    entries = '  - {config: "own.yaml:ppo", seeds: 2-3}\n  - {config: "own.yaml:ppo", bar: 400, overrides: [algo.gamma=0.9]}\n'
    (queue.folder / "queue.yaml").write_text(f"seeds: 7\njobs:\n{entries}")
    code, output = queue.finish()
    assert code == 0, output
    assert queue.seeds() == [2, 7, 3]  # first seeds of all entries first
    assert "402 (bar none) done" in output and "407 (bar 400) ok" in output
    assert "2/2    none" in output and "1/1     400" in output
