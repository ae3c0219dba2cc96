"""Faults at random moments of real runs: `python benchmarks/chaos.py --faults 500 --seed 0`.

Each run is trained by the real command in real processes, with a fault drawn for every attempt: uniformly over wall time
or over the entries of a named place in the code. It is resumed until it is finished and then compared, by a hash over its
weights and its whole state, with the run that nothing happened to. After every attempt all that was committed must still
be there. A finished run is one line in `benchmarks/results/chaos.jsonl`, and the same command goes on after an
interruption; `--report` prints the table without running anything.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from harness import RESULTS, ROOT, machine, source, versions, write
from run import Outcomes

sys.path.insert(0, str(ROOT / "tests"))
from faults.files import DAMAGES
from faults.points import Fault
from faults.server import Child, Server

from gymnast.errors import CheckpointError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint, index
from gymnast.runs.store import Run, is_id
from gymnast.runs.tree import encode

COMMON = ("policy.hidden=[8]", "train.stop_when_solved=false", "train.keep_checkpoints=3", "eval.episodes=2")
SIZES = ("env.n_envs=4", "algo.n_steps=16", "algo.batch_size=32", "algo.n_epochs=2", "train.checkpoint_every=256")
A2C = ("env.n_envs=4", "algo.n_steps=16", "train.checkpoint_every=256")
OWN = ("env.module=small_envs",)
PLANS: dict[str, tuple[str, ...]] = {
    "CartPole ppo": ("CartPole-v1:ppo", *COMMON, *SIZES, "-n", "2560", "eval.every=640", "policy.normalize_obs=true"),
    "CartPole ppo, traced": ("CartPole-v1:ppo", *COMMON, *SIZES, "-n", "1920", "train.trace_hashes=true"),
    "CartPole reinforce": (
        "CartPole-v1:reinforce",
        *COMMON,
        "env.n_envs=4",
        "-n",
        "3000",
        "train.checkpoint_every=500",
    ),
    "FrozenLake ppo": ("FrozenLake-v1:ppo", *COMMON, *SIZES, "-n", "2560", "eval.every=640"),
    "Acrobot a2c": ("Acrobot-v1:a2c", *COMMON, *A2C, "-n", "2560", "env.time_limit=50", "policy.normalize_obs=true"),
    "Pendulum ppo": ("Pendulum-v1:ppo", *COMMON, *SIZES, "-n", "2560", "env.time_limit=50"),
    "Taxi ppo, masked": ("Taxi-v4:ppo_masked", *COMMON, *SIZES, "-n", "1920", "env.time_limit=40"),
    "Walk ppo, replayed": ("Walk-v0:ppo", *OWN, *COMMON, *SIZES, "-n", "1920", "eval.every=640"),
    "Walk a2c, workers": (
        *("Walk-v0:a2c", *OWN, *COMMON, *A2C, "-n", "1280"),
        *("env.vectorization=workers", "env.n_workers=2", "eval.env.vectorization=inprocess"),
    ),
    "Nested ppo": ("NestedIdentity-v0:ppo", *OWN, *COMMON, *SIZES, "-n", "1920", "policy.normalize_obs=true"),
    "CartPole ppo, judged beside": (
        *("CartPole-v1:ppo", *COMMON, *SIZES, "-n", "1920", "eval.every=640", "eval.mode=worker"),
    ),
}
SIGNALS = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
"""A kill is the hardest, and drawn most often."""
DISK = ("save file", "save move", "save pointer", "status", "metrics", "atomic", "lineage")
MAX_FAULTS = 4
"""Per run; the attempt after them has none, so that every run ends."""
PATIENCE = 60.0


@dataclass
class Injected:
    """One fault that really happened."""

    kind: str
    point: str
    """Where: a named place, `wall time`, or `on disk`."""
    attempt: str
    """train or resume."""
    code: int
    redone: int | None = None
    """Env steps that had been logged and have to be repeated."""


@dataclass
class Outcome:
    """What became of one run."""

    key: str
    plan: str
    seed: int
    faults: list[Injected] = field(default_factory=list)
    attempts: int = 0
    restarts: int = 0
    """How often there was no checkpoint yet, and the command was given again."""
    recovered: bool = False
    equal: bool = False
    lost: list[str] = field(default_factory=list)
    """Committed checkpoints, or rows up to them, that could no longer be read."""
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Course:
    """What must be there, whatever happens next."""

    committed: int = 0
    """The last checkpoint that `last` pointed at; after deliberate damage the one before it."""
    spoiled: bool = False
    """The newest checkpoint was damaged on purpose and no other was committed since."""

    def after(self, commits: list[int]) -> None:
        """Take in what an attempt committed."""
        if commits:
            self.committed, self.spoiled = commits[-1], False


@dataclass(frozen=True)
class Reference:
    """The run that nothing happened to."""

    hash: str
    steps: list[int]
    seconds: float
    entries: dict[str, int]


def fingerprint(run: Run) -> str:
    """sha256 over the policy and the whole state of the last checkpoint, and over which one is the best."""
    name = checkpoint.read_pointer(run.folder, "last")
    saved = checkpoint.load(run.checkpoints / str(name))
    tensors: dict[str, Any] = {}
    tree = encode(saved.state, tensors, "state")
    digest = hashlib.sha256(json.dumps([name, checkpoint.read_pointer(run.folder, "best"), tree]).encode())
    for kind, named in (("policy", saved.policy), ("state", tensors)):
        for key, tensor in sorted(named.items()):
            digest.update(f"{kind} {key} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def steps_of(run: Run) -> list[int]:
    """Env steps of all rows that count."""
    return [int(row["env_steps"]) for row in MetricRows(run.metrics_path)] if run.metrics_path.exists() else []


def runs_in(folder: Path) -> list[Run]:
    """Complete runs, in the order they were made."""
    found = [Run(path) for path in (folder / "runs").glob("*") if is_id(path.name)]
    return sorted((run for run in found if run.exists()), key=lambda run: run.status().created)


class Chaos:
    """Trains runs and lets things go wrong."""

    def __init__(self, server: Server, references: dict[str, Reference]) -> None:
        self.server, self.references = server, references

    def reference(self, plan: str) -> Reference:
        """Train the plan in peace, once, and count how often each place is entered."""
        with tempfile.TemporaryDirectory(prefix="chaos-") as name:
            folder = Path(name)
            counts = folder / "entries.json"
            counted = self.server.run("train", *PLANS[plan], "-q", cwd=folder, count=counts)
            if counted.wait() != 0:
                raise SystemExit(f"{plan} cannot be trained at all: {counted.err}")
            shutil.rmtree(folder / "runs")
            began = time.monotonic()
            child = self.server.run("train", *PLANS[plan], "-q", cwd=folder)
            seconds = time.monotonic() - began
            assert child.code == 0, child.err
            (run,) = runs_in(folder)
            entries = {point: count for point, count in json.loads(counts.read_text()).items() if count}
            return Reference(fingerprint(run), steps_of(run), seconds, entries)

    def one_run(self, key: str, seed: int) -> Outcome:
        """One run from its first step to its end, through a few faults."""
        draw = random.Random(f"{seed} {key}")
        plan = draw.choice(list(PLANS))
        reference = self.references[plan]
        outcome = Outcome(key, plan, seed)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="chaos-") as name:
            folder = Path(name)
            faults, course = draw.randint(1, MAX_FAULTS), Course()
            for attempt in range(4 * MAX_FAULTS):
                calm = len(outcome.faults) >= faults or attempt >= 2 * MAX_FAULTS
                if self._attempt(folder, plan, draw, calm, course, outcome):
                    break
            run = runs_in(folder)[-1] if runs_in(folder) else None
            if run is not None and run.status().state == "finished":
                outcome.recovered = True
                try:
                    outcome.equal = fingerprint(run) == reference.hash and steps_of(run) == reference.steps
                except CheckpointError as error:
                    outcome.lost.append(f"finished, but its end cannot be read: {error}")
                _check_tidy(run, outcome)
        outcome.seconds = round(time.monotonic() - began, 2)
        return outcome

    def _attempt(
        self, folder: Path, plan: str, draw: random.Random, calm: bool, course: Course, outcome: Outcome
    ) -> bool:
        """One process; returns whether the run is finished."""
        reference, journal = self.references[plan], folder / "journal"
        journal.unlink(missing_ok=True)
        run = runs_in(folder)[-1] if runs_in(folder) else None
        resume = run is not None and bool(checkpoint.steps(run.folder))
        if run is not None and not resume:
            outcome.restarts += 1
            shutil.rmtree(run.folder)  # killed before its first checkpoint: there is nothing to go on from
            index.rebuild(run.root, notice=lambda text: None)
        damaged = False
        if resume and not calm and draw.random() < 0.12:
            assert run is not None
            damaged = self._damage(run, draw, course, outcome)
        arguments = ("resume", "-q") if resume else ("train", *PLANS[plan], "-q")
        fault, wall = (
            (None, None) if calm or damaged else _draw_fault(draw, reference, course.committed if resume else 0)
        )
        outcome.attempts += 1
        child = self.server.start(*arguments, cwd=folder, faults=[fault] if fault else [], journal=journal)
        kind = fault.kind if fault else ""
        struck = False
        if wall is not None:
            kind = draw.choice(SIGNALS)
            time.sleep(wall)
            struck = _strike(child, kind)
        try:
            code = child.wait(PATIENCE)
        except TimeoutError as error:
            outcome.problems.append(f"hung: {kind} {fault}: {error}")
            code = -9
        noted = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
        struck = struck or any("fired" in one for one in noted)
        commits = [one["committed"] for one in noted if "committed" in one]
        run = runs_in(folder)[-1] if runs_in(folder) else None
        course.after(commits)
        reached = _check(run, course, reference, outcome)
        if struck:
            injected = Injected(kind, fault.point if fault else "wall time", arguments[0], code)
            injected.redone = max(0, reached - course.committed)
            outcome.faults.append(injected)
            _check_manners(child, injected, run, outcome)
        elif code != 0:
            outcome.problems.append(f"exit code {code} without a fault: {child.err[-600:]}")
        return run is not None and run.status().state == "finished"

    def _damage(self, run: Run, draw: random.Random, course: Course, outcome: Outcome) -> bool:
        """Spoil the newest checkpoint, when there is another one to fall back to."""
        if len(checkpoint.steps(run.folder)) < 2:
            return False
        name = draw.choice([checkpoint.POLICY, checkpoint.STATE, checkpoint.MANIFEST])
        kind = draw.choice(list(DAMAGES))
        newest = checkpoint.load_latest(run.folder, with_state=False)[0]
        DAMAGES[kind](newest.folder / name, draw)
        fallback = checkpoint.load_latest(run.folder)[0].manifest.step
        course.committed, course.spoiled = fallback, True
        redone = max(0, newest.manifest.step - fallback)
        outcome.faults.append(Injected(f"{kind} in {name}", "on disk", "resume", 0, redone))
        return True


def _draw_fault(draw: random.Random, reference: Reference, done: int) -> tuple[Fault | None, float | None]:
    """A fault at a place, or seconds after which a signal comes; uniform over what is still to be done."""
    left = 1.0 - done / reference.steps[-1]
    entries = {point: max(1, round(left * count)) for point, count in reference.entries.items()}
    if done:
        entries |= {"restore": 1, "begin": 1, "lineage": 1}
    which = draw.random()
    if which < 0.35:
        return None, draw.uniform(0.0, (0.1 + left) * reference.seconds)
    if which < 0.80:
        point = draw.choice(list(entries))
        nth = draw.randint(1, entries[point])
        return Fault(point, draw.choice(SIGNALS), nth, after=draw.random() < 0.5), None
    if which < 0.90:
        point = draw.choice([name for name in DISK if name in entries])
        nth, times = draw.randint(1, entries[point]), draw.choice([1, 3, 10**6])
        return Fault(point, "ENOSPC", nth, times=times), None
    kind, point = draw.choice(
        [("memory", "act"), ("torch memory", "gradients"), ("nan", "gradients"), ("clock=3600", "rollout"),
         ("clock=-3600", "rollout"), ("FSIZE=9000", "rollout")]
    )  # fmt: skip
    return Fault(point, kind, draw.randint(1, entries[point]), after=kind == "nan"), None


def _strike(child: Child, kind: str) -> bool:
    """Send a signal; whether the process still lived."""
    import signal

    try:
        state = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    child.signal(getattr(signal, kind))
    return state != "Z"


def _check(run: Run | None, course: Course, reference: Reference, outcome: Outcome) -> int:
    """Everything committed is there; returns the last step that was logged."""
    committed = course.committed
    if run is None:
        if committed:
            outcome.lost.append(f"the run is gone, step {committed} was committed")
        return 0
    steps = steps_of(run)
    if not committed:
        return steps[-1] if steps else 0
    try:
        saved, skipped = checkpoint.load_latest(run.folder)
    except Exception as error:
        outcome.lost.append(f"no checkpoint can be read, step {committed} was committed: {error}")
        return 0
    if saved.manifest.step < committed or (skipped and not course.spoiled):
        outcome.lost.append(f"step {committed} was committed, step {saved.manifest.step} is read: {skipped}")
    expected = [step for step in reference.steps if step <= saved.manifest.step]
    if [step for step in steps if step <= saved.manifest.step] != expected:
        outcome.lost.append(f"rows up to step {saved.manifest.step} are not all there")
    return steps[-1] if steps else 0


def _check_manners(child: Child, injected: Injected, run: Run | None, outcome: Outcome) -> None:
    """How a process ends that could say something."""
    what = f"{injected.kind} at {injected.point} ({injected.attempt})"
    if injected.kind == "SIGKILL":
        return
    early = injected.code == -15 and (run is None or run.shown_state() != "finished")  # before training has begun
    if injected.code not in (0, 1, 2, 130) and not early:
        outcome.problems.append(f"{what}: exit code {injected.code}: {child.err[-600:]}")
    if "Traceback" in child.err:
        outcome.problems.append(f"{what}: a traceback: {child.err[-900:]}")


def _check_tidy(run: Run, outcome: Outcome) -> None:
    """Nothing half-written stays, and the index knows how the run ended."""
    if left := [path.name for path in run.checkpoints.glob(".*")]:
        outcome.problems.append(f"left behind: {left}")
    rows = index.list_runs(run.root, notice=lambda text: None)
    if [row.status for row in rows if row.id == run.id] != ["finished"]:
        outcome.problems.append(f"the index says {rows}")


def summary(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """The table."""
    faults = [fault for outcome in outcomes for fault in outcome["faults"]]
    redone = sorted(fault["redone"] for fault in faults if fault["redone"] is not None)
    recovered = [outcome for outcome in outcomes if outcome["recovered"]]
    return {
        "runs": len(outcomes),
        "faults": len(faults),
        "recovered": len(recovered),
        "equal_to_uninterrupted": sum(outcome["equal"] for outcome in recovered),
        "lost": sum(len(outcome["lost"]) for outcome in outcomes),
        "problems": sum(len(outcome["problems"]) for outcome in outcomes),
        "began_again_before_first_checkpoint": sum(outcome["restarts"] for outcome in outcomes),
        "by_kind": dict(Counter(fault["kind"].partition(" in ")[0] for fault in faults).most_common()),
        "by_point": dict(Counter(fault["point"] for fault in faults).most_common()),
        "by_attempt": dict(Counter(fault["attempt"] for fault in faults).most_common()),
        "by_plan": dict(Counter(outcome["plan"] for outcome in outcomes).most_common()),
        "redone_env_steps": {
            "median": median(redone) if redone else 0,
            "p90": redone[int(0.9 * len(redone))] if redone else 0,
            "max": redone[-1] if redone else 0,
        },
    }


def report(path: Path, seed: int) -> dict[str, Any]:
    """Print the table of all that was done with this seed, and save it."""
    outcomes = [one for one in Outcomes(path).read().values() if one["seed"] == seed]
    table = summary(outcomes)
    for key, value in table.items():
        print(f"{key:<40} {value}")
    for outcome in outcomes:
        for text in (*outcome["lost"], *outcome["problems"]):
            print(f"  {outcome['key']} {outcome['plan']}: {text}")
        if not outcome["recovered"] or not outcome["equal"]:
            print(f"  {outcome['key']} {outcome['plan']}: recovered {outcome['recovered']}, equal {outcome['equal']}")
    record = {"name": "chaos", "seed": seed, "source": source(), "machine": machine(), "versions": versions()}
    write(path.with_suffix(".json"), record | {"summary": table})
    return table


def main() -> None:
    """Run until enough faults have happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="print what was found so far")
    parser.add_argument("--output", type=Path, default=RESULTS / "chaos.jsonl")
    options = parser.parse_args()
    if options.report:
        report(options.output, options.seed)
        return
    print(f"seed {options.seed}", flush=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    results, lock = Outcomes(options.output), threading.Lock()
    done = {key: one for key, one in results.read().items() if one["seed"] == options.seed}
    count, number = sum(len(one["faults"]) for one in done.values()), -1
    with Server() as server:
        references = {plan: Chaos(server, {}).reference(plan) for plan in PLANS}

    def work(_: int) -> None:
        nonlocal count, number
        with Server() as server:
            chaos = Chaos(server, references)
            while True:
                with lock:
                    if count >= options.faults:
                        return
                    number += 1
                    key = f"{options.seed}:{number}"
                if key in done:
                    continue
                outcome = chaos.one_run(key, options.seed)
                results.append(asdict(outcome))
                with lock:
                    count += len(outcome.faults)
                    good = outcome.equal and not outcome.lost and not outcome.problems
                    shown = ", ".join(f"{one.kind} at {one.point}" for one in outcome.faults)
                    print(f"{count:>5} {'ok ' if good else 'BAD'} {outcome.plan}: {shown}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    table = report(options.output, options.seed)
    sys.exit(table["lost"] > 0 or table["equal_to_uninterrupted"] < table["runs"])


if __name__ == "__main__":
    main()
