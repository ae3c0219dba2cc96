"""A resumable queue of training runs: `python benchmarks/run.py --queue benchmarks/queues/results.yaml`.

Each job trains one config with one seed and plays fresh evaluation episodes, greedy or sampled as the config says. A
finished job is one line in `benchmarks/results/<queue>.jsonl`, written at once; the queue may be killed at any moment and
goes on with the same command. A run that was cut short is resumed from its checkpoint. A job is known by its config id,
seed, overrides and a hash of the resolved config, so a changed preset is run again. `--report` prints the table without
running anything.
`--jobs N` trains N runs at the same time, each with one thread; the wall time of a run then depends on its neighbours.
A line holds the run's evaluation curve, `[[env_steps, eval/return_mean], …]`, and how its envs were stepped. An entry may
have `seeds` of its own, and needs no `bar` where there is no threshold to meet.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from contestants import gymnast
from harness import RESULTS, ROOT, machine, source, versions

from gymnast.service.statistics import bootstrap_interval, interquartile_mean

EVALUATION_SEED = 1_000_000
"""Added to a job's seed, so that no evaluation episode was seen while the config was tuned."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""For every job: N jobs on N cores must not start N² threads."""


@dataclass(frozen=True)
class Job:
    """One config and one seed."""

    config: str
    seed: int
    bar: float | None = None
    overrides: tuple[str, ...] = ()
    score: str = "mean"
    episodes: int = 100

    @property
    def key(self) -> str:
        """What makes an outcome this job's: config id, seed, overrides and the resolved config behind them."""
        parts = [self.config, self.seed, self.overrides, config_hash(self.config, self.overrides)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@cache
def config_hash(config: str, overrides: tuple[str, ...]) -> str:
    """Hash of everything in the resolved config that can change a result; texts of the env's description cannot."""
    from gymnast.config.load import resolve

    data = resolve(config, overrides).config.model_dump(mode="json")
    spec, _ = data.pop("spec"), data.pop("log")
    data["spec"] = {key: spec[key] for key in ("solved_at", "random_score", "horizon")}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def read_queue(path: Path) -> list[Job]:
    """The jobs of a queue file, all configs with their first seed first."""
    from ruamel.yaml import YAML

    queue = YAML(typ="safe").load(path.read_text())
    rounds: dict[int, list[Job]] = {}
    for entry in queue["jobs"]:
        settings = {key: value for key, value in entry.items() if key not in ("seeds", "overrides")}
        for number, seed in enumerate(_seeds(entry.get("seeds", queue.get("seeds", 0)))):
            job = Job(**settings, seed=seed, overrides=tuple(entry.get("overrides", ())))
            rounds.setdefault(number, []).append(job)
    jobs = [job for number in sorted(rounds) for job in rounds[number]]
    if wrong := {job.score for job in jobs} - {"mean", "exact"}:
        raise SystemExit(f"{path.name}: score must be mean or exact, not {', '.join(sorted(wrong))}")
    return jobs


def _seeds(text: Any) -> range:
    """`3` or `0-4`."""
    first, _, last = str(text).partition("-")
    return range(int(first), int(last or first) + 1)


class Outcomes:
    """The results file: one JSON object per line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()

    def read(self) -> dict[str, dict[str, Any]]:
        """Outcomes by job key; a line torn by a kill is passed over, and its job counts as not done."""
        found = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            try:
                outcome = json.loads(line)
                found[outcome["key"]] = outcome
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def append(self, outcome: dict[str, Any]) -> None:
        """One write, on the disk before this returns; after a torn line it begins on a new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.lock, self.path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            file.write(b"\n" * torn + json.dumps(outcome, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


class JobError(Exception):
    """A job that gave no outcome."""


class Runner:
    """Runs jobs through the command line, as a user would."""

    def __init__(self, command: list[str], runs: Path, here: tuple[str, ...] = ()) -> None:
        self.command, self.runs = command, runs
        self.here = here
        """Settings of this machine, e.g. its device: passed to every training, no part of what makes a job."""
        self.libc = ctypes.CDLL(None)

    def run(self, job: Job) -> dict[str, Any]:
        """Train (or resume, or neither when only the evaluation was cut off), then evaluate."""
        folder = self.runs / job.key
        resumed = self._train(job, folder)
        run = _find_run(folder)
        if run is None:
            raise JobError(f"the training left no run in {folder}")
        config = json.loads((run / "config.json").read_text())
        options = ["--episodes", str(job.episodes), "--seed", str(EVALUATION_SEED + job.seed), "--json"]
        evaluation = json.loads(self._call("eval", run.name, *options, "--runs-dir", str(folder)))
        score, status = evaluation[job.score], json.loads((run / "status.json").read_text())
        outcome = {"key": job.key, **asdict(job), "config_hash": config_hash(job.config, job.overrides)}
        passed = None if job.bar is None else score >= job.bar - 1e-9
        outcome |= {"result": score, "passed": passed, "evaluation": evaluation, "resumed": resumed}
        outcome |= {key: status.get(key) for key in ("env_steps", "wall_seconds", "solved", "stop_reason")}
        outcome["here"] = self.here
        return outcome | {"vectorization": config["env"]["vectorization"], "curve": evaluation_curve(run)}

    def _train(self, job: Job, folder: Path) -> bool:
        run = _find_run(folder)
        if run is not None:
            if json.loads((run / "status.json").read_text())["state"] == "finished":
                return False
            try:
                self._call("resume", run.name, "--quiet", "--runs-dir", str(folder))
                return True
            except JobError as error:  # no checkpoint yet, or a damaged one
                print(f"{job.config} seed {job.seed}: cannot resume, starting again ({error})", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        self._call(
            "train",
            job.config,
            "--seed",
            str(job.seed),
            *job.overrides,
            *self.here,
            "--quiet",
            "--runs-dir",
            str(folder),
        )
        return False

    def _call(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self.command, *arguments],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=self._die_with_us,
            env=os.environ | ONE_THREAD,
        )
        if done.returncode:
            raise JobError(
                f"{arguments[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:].strip()}"
            )
        return done.stdout

    def _die_with_us(self) -> None:
        """In the child: end when the queue is killed, so that its successor does not find the run still being trained."""
        pr_set_pdeathsig = 1
        self.libc.prctl(pr_set_pdeathsig, signal.SIGKILL)


def _find_run(folder: Path) -> Path | None:
    found = [path.parent for path in folder.glob("*/status.json") if not path.parent.is_symlink()]
    return found[0] if found else None


def evaluation_curve(run: Path) -> list[list[float]]:
    """`[env_steps, mean return]` of every evaluation made while training."""
    from gymnast.metrics.sinks.jsonl import MetricRows

    rows = list(MetricRows(run / "metrics.jsonl")) if (run / "metrics.jsonl").exists() else []
    return [[row["env_steps"], row["eval/return_mean"]] for row in rows if row.get("eval/return_mean") is not None]


def run_queue(jobs: list[Job], outcomes: Outcomes, runner: Runner, workers: int) -> int:
    """Run what is not done yet; the number of jobs that failed."""
    about = {"jobs_at_once": workers, "versions": versions(), "machine": machine(), "source": source()}
    failures = 0

    def one(job: Job) -> None:
        nonlocal failures
        try:
            if job.key in done:
                return
            outcome = runner.run(job)
        except Exception as error:
            failures += 1
            print(f"{job.config} seed {job.seed}: FAILED, {type(error).__name__}: {error}", flush=True)
            return
        outcomes.append(outcome | {"finished": datetime.now(UTC).isoformat(timespec="seconds")} | about)
        mark = {True: "ok", False: "BELOW THE BAR", None: "done"}[outcome["passed"]]
        print(f"{job.config} seed {job.seed}: {outcome['result']:.4g} (bar {_bar(job)}) {mark}", flush=True)

    done = outcomes.read()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, jobs))
    return failures


def _bar(job: Job) -> str:
    return "none" if job.bar is None else f"{job.bar:g}"


def report(jobs: list[Job], outcomes: dict[str, dict[str, Any]]) -> bool:
    """Print one line per config; whether all seeds of all configs are there and meet the bar."""
    print(
        f"{'config':<34}{'seeds':>6} {'bar':>7} {'min':>9} {'IQM':>9} {'95 % interval':>20}{'steps':>11}{'seconds':>9}  scores"
    )
    complete = True
    for name in dict.fromkeys((job.config, job.overrides) for job in jobs):
        mine = [job for job in jobs if (job.config, job.overrides) == name]
        try:
            rows = [outcomes[job.key] for job in mine if job.key in outcomes]
        except Exception as error:
            print(f"{name[0]:<34} {error}")
            rows = []
        passed = len(rows) == len(mine) and all(row["passed"] is not False for row in rows)
        complete &= passed
        label = " ".join((name[0], *name[1]))
        if not rows:
            print(f"{label:<34}{f'0/{len(mine)}':>6} {_bar(mine[0]):>7}")
            continue
        scores = [row["result"] for row in rows]
        low, high = bootstrap_interval([scores])
        print(
            f"{label:<34}{f'{len(rows)}/{len(mine)}':>6} {_bar(mine[0]):>7} {min(scores):>9.4g}"
            f" {float(interquartile_mean(scores)):>9.4g} {f'[{low:.4g}, {high:.4g}]':>20}"
            f"{median(row['env_steps'] for row in rows):>11,.0f}{median(row['wall_seconds'] for row in rows):>9.1f}"
            f"  {' '.join(f'{score:.4g}' for score in scores)}{'' if passed else '  not all at the bar'}"
        )
    return complete


def main() -> int:
    """Run the queue, then print its table. Exit code 0 when every seed meets its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--report", action="store_true", help="print the table and run nothing")
    parser.add_argument("--results", type=Path, help="benchmarks/results/<queue>.jsonl by default")
    parser.add_argument("--runs-dir", type=Path, help="runs/queue-<queue> by default")
    parser.add_argument("--only", default="", help="only configs that contain this text")
    parser.add_argument("--here", action="append", default=[], help="a setting of this machine, e.g. train.device=cuda")
    parser.add_argument("--command", default=shlex.join(gymnast()), help="the command to run; gymnast by default")
    options = parser.parse_args()
    jobs = [job for job in read_queue(options.queue) if any(word in job.config for word in options.only.split(","))]
    outcomes = Outcomes(options.results or RESULTS / f"{options.queue.stem}.jsonl")
    if not options.report:
        runs = (options.runs_dir or ROOT / "runs" / f"queue-{options.queue.stem}").resolve()
        runs.mkdir(parents=True, exist_ok=True)
        with (runs / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SystemExit(f"Another queue is running in {runs}.") from None
            run_queue(jobs, outcomes, Runner(shlex.split(options.command), runs, tuple(options.here)), options.jobs)
    return 0 if report(jobs, outcomes.read()) else 1


if __name__ == "__main__":
    sys.exit(main())
