"""Learning curves beside Stable-Baselines3's under the same rl-zoo settings: `python benchmarks/parity.py`.

Each entry of `queues/parity.yml` is trained by both libraries with the same seeds. gymnast reads the entry through
`gymnast config import-zoo`, SB3 through `peers/sb3_curve.py`. The curve is the mean raw return of the last 100 training
episodes, which both report after every rollout. A finished run is one line of `results/parity.jsonl`; the queue may be
killed at any moment and goes on with the same command. `--report` judges what is there and draws the picture.

The bar: at every tenth of the budget the 95 % confidence bands of the mean over the seeds overlap.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from contestants import PEERS, peer_python
from harness import RESULTS, ROOT, machine, source, versions, write
from run import Outcomes

ENTRIES = ROOT / "benchmarks" / "queues" / "parity.yml"
PICTURE = ROOT / "docs" / "images" / "parity.svg"
LIBRARIES = ("stable-baselines3", "gymnast")
POINTS = 50
"""Points kept of each curve, evenly over the budget."""
TENTHS = tuple(range(POINTS // 10 - 1, POINTS, POINTS // 10))
T_975 = {2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 19: 2.093, 21: 2.080, 31: 2.040, 49: 2.010, 59: 2.001}
"""Student's t for a 95 % band, by degrees of freedom (seeds − 1)."""


@dataclass(frozen=True)
class Job:
    """One library, one entry, one seed."""

    library: str
    env: str
    seed: int

    @property
    def key(self) -> str:
        """What its line in the results file is found by."""
        return f"{self.library} {self.env} {self.seed}"


def entries() -> dict[str, dict[str, Any]]:
    """The zoo entries, as the YAML has them."""
    from ruamel.yaml import YAML

    return YAML(typ="safe").load(ENTRIES.read_text())


def train_sb3(job: Job, entry: dict[str, Any]) -> tuple[list[int], list[float | None], float]:
    """SB3's curve."""
    command = [str(peer_python("sb3")), str(PEERS / "sb3_curve.py")]
    command += ["--env", job.env, "--entry", json.dumps(entry), "--seed", str(job.seed)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["env_steps"], found["return_mean"], found["seconds"]


def train_gymnast(job: Job, entry: dict[str, Any]) -> tuple[list[int], list[float | None], float]:
    """Our curve, by the two commands a user types."""
    gymnast = [sys.executable, "-m", "gymnast"]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / f"{job.env}.yaml"
        imported = [*gymnast, "config", "import-zoo", str(ENTRIES), job.env, "--algo", "ppo", "--output", str(config)]
        subprocess.run(imported, check=True, capture_output=True)
        train = [*gymnast, "train", f"{config}:zoo_ppo", "--seed", str(job.seed), "--quiet", "--runs-dir", folder]
        # One evaluation at the end: the curve is of training episodes, and a solved env is trained on to the budget.
        train += ["train.stop_when_solved=false", f"eval.every={int(entry['n_timesteps'])}", "log.window=100"]
        subprocess.run(train, check=True, capture_output=True)
        (log,) = Path(folder).rglob("metrics.jsonl")
        rows = [json.loads(line) for line in log.read_text().splitlines()]
    return [row["env_steps"] for row in rows], [row["rollout/return_mean"] for row in rows], rows[-1]["time/seconds"]


def sample(steps: list[int], values: list[float | None], budget: int) -> list[float | None]:
    """The curve at `POINTS` even points: the first row at or after each of them."""
    points, row = [], 0
    for k in range(1, POINTS + 1):
        while row < len(steps) - 1 and steps[row] < k * budget / POINTS:
            row += 1
        points.append(values[row])
    return points


def run(job: Job, entry: dict[str, Any]) -> dict[str, Any]:
    """One line of the results."""
    trainer = train_gymnast if job.library == "gymnast" else train_sb3
    steps, values, seconds = trainer(job, entry)
    curve = sample(steps, values, int(entry["n_timesteps"]))
    about = {"library": job.library, "env": job.env, "seed": job.seed, "entry": entry}
    where = {"machine": machine()["cpu"], "cores": os.cpu_count(), "torch": versions()["torch"]}
    return {"key": job.key, **about, **where, "env_steps": steps[-1], "seconds": round(seconds, 1), "curve": curve}


def band(curves: list[list[float | None]], point: int) -> tuple[float, float]:
    """Mean over the seeds and half the width of its 95 % band."""
    values = [curve[point] for curve in curves if curve[point] is not None]
    n = len(values)
    return mean(values), T_975[n - 1] * stdev(values) / math.sqrt(n)


def report(found: dict[str, dict[str, Any]], seeds: int, name: str) -> bool:
    """Print and save the table of tenths; draw the picture; whether every pair of bands overlaps."""
    summary: dict[str, Any] = {}
    ok = True
    for env in entries():
        both = {
            library: [found[key]["curve"] for s in range(seeds) if (key := Job(library, env, s).key) in found]
            for library in LIBRARIES
        }
        if min(map(len, both.values())) < 3:
            print(f"{env}: not enough finished runs yet ({', '.join(f'{k} {len(v)}' for k, v in both.items())})")
            ok = False
            continue
        ran = sorted({f"{line['cores']} cores, torch {line['torch']}" for line in found.values() if line["env"] == env})
        print(f"\n{env}  (seeds: {', '.join(f'{k} {len(v)}' for k, v in both.items())}; {'; '.join(ran)})")
        rows = []
        for tenth, point in enumerate(TENTHS, 1):
            (a, da), (b, db) = (band(both[library], point) for library in LIBRARIES)
            overlap = abs(a - b) <= da + db
            ok &= overlap
            rows.append({"tenth": tenth, "sb3": [round(a, 2), round(da, 2)], "gymnast": [round(b, 2), round(db, 2)]})
            rows[-1]["overlap"] = overlap
            print(
                f"  {tenth:>2}/10  SB3 {a:9.2f} ± {da:6.2f}   gymnast {b:9.2f} ± {db:6.2f}   {'overlap' if overlap else 'APART'}"
            )
        seconds = {
            library: round(mean(found[Job(library, env, s).key]["seconds"] for s in range(len(both[library]))), 1)
            for library in LIBRARIES
        }
        summary[env] = {"seeds": len(both["gymnast"]), "ran_on": ran, "tenths": rows, "mean_seconds": seconds}
    record = {
        "name": name,
        "source": source(),
        "machine": machine(),
        "versions": {"gymnast": versions(), "sb3": versions(peer_python("sb3"))},
        "all_overlap": ok,
        "envs": summary,
    }
    write(RESULTS / f"{name}.json", record)
    if name == "parity":
        draw(found, seeds)
    return ok


def draw(found: dict[str, dict[str, Any]], seeds: int) -> None:
    """Mean and band of both libraries, one panel per env."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "gymnast"
    figure, axes = pyplot.subplots(1, len(entries()), figsize=(12, 3.4), layout="constrained")
    for axis, (env, entry) in zip(axes, entries().items()):
        budget = int(entry["n_timesteps"])
        for library, colour in zip(LIBRARIES, ("#d1495b", "#00798c")):
            curves = [found[k]["curve"] for s in range(seeds) if (k := Job(library, env, s).key) in found]
            if len(curves) < 3:
                continue
            points = [i for i in range(POINTS) if sum(curve[i] is not None for curve in curves) == len(curves)]
            x = [(i + 1) * budget / POINTS for i in points]
            y, half = zip(*(band(curves, i) for i in points))
            axis.plot(x, y, color=colour, label=f"{library} ({len(curves)} seeds)")
            axis.fill_between(
                x, [a - b for a, b in zip(y, half)], [a + b for a, b in zip(y, half)], color=colour, alpha=0.25
            )
        axis.set_title(env)
        axis.set_xlabel("env steps")
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean return of 100 training episodes")
    axes[0].legend(loc="lower right")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> int:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="train from this seed on: two queues share the work")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once, one thread each")
    parser.add_argument("--only", choices=LIBRARIES, help="train one library only")
    parser.add_argument("--env", choices=list(entries()), help="train one env only")
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--name", default="parity", help="of the results file, to keep another machine's apart")
    options = parser.parse_args()
    outcomes, zoo = Outcomes(RESULTS / f"{options.name}.jsonl"), entries()
    done = outcomes.read()
    jobs = [
        Job(library, env, seed)
        for seed in range(options.first_seed, options.seeds)
        for env in zoo
        for library in LIBRARIES
    ]
    jobs = [job for job in jobs if options.only in (None, job.library) and options.env in (None, job.env)]
    jobs = [job for job in jobs if job.key not in done]
    if not options.report and jobs:
        printing = threading.Lock()

        def work(job: Job) -> None:
            if job.key in outcomes.read():
                return
            outcome = run(job, zoo[job.env])
            outcomes.append(outcome)
            with printing:
                print(f"{job.key}: {outcome['curve'][-1]:.1f} after {outcome['seconds']:.0f} s", flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, jobs))
    return 0 if report(outcomes.read(), options.seeds, options.name) else 1


if __name__ == "__main__":
    sys.exit(main())
