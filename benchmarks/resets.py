"""What resets at boundaries cost: runs stepped by EnvPool with the default `env.resume_every` and with none.

    python benchmarks/resets.py [--seeds 0 1 2 3 4]

Each run trains for the same budget without stopping early. Recorded are the mean return of the last evaluation over 100 episodes
and the processor time of the whole process tree, which a busy neighbour changes less than the wall time. Runs interleave, each is
saved at once, and a second call goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, median
from typing import Any

from harness import RESULTS, machine, versions

FILE = RESULTS / "resets.json"
CONFIGS = {
    "Acrobot-v1": ["Acrobot-v1:ppo", "-n", "100000"],
    "LunarLander-v3": ["LunarLander-v3:ppo", "-n", "300000"],
}
WAYS = {"default": [], "none": ["env.resume_every=1000000000"]}
COMMON = ["env.vectorization=envpool", "train.stop_when_solved=false", "eval.every=1000000000", "eval.episodes=100"]


def main() -> None:
    """Train what is missing, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    seeds = parser.parse_args().seeds
    content = json.loads(FILE.read_text()) if FILE.exists() else {"runs": {}}
    content |= {"machine": machine(), "versions": versions(), "settings": COMMON}
    for seed in seeds:
        for env, words in CONFIGS.items():
            for way in WAYS if seed % 2 == 0 else reversed(WAYS):
                key = f"{env} {way} {seed}"
                if key not in content["runs"]:
                    content["runs"][key] = train([*words, *COMMON, *WAYS[way], "--seed", str(seed)])
                    FILE.write_text(json.dumps(content, indent=1) + "\n")
    show(content["runs"])


def train(words: list[str]) -> dict[str, Any]:
    """One run: its score and what it cost."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "gymnast", "train", *words, "-q", "--runs-dir", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = next(path for path in Path(folder).iterdir() if path.is_dir() and not path.is_symlink())
        status = json.loads((run / "status.json").read_text())
        config = json.loads((run / "config.json").read_text())
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "return": status["last_return"],
        "cpu_seconds": round(seconds, 2),
        "resume_every": config["env"]["resume_every"],
        "env_steps": status["env_steps"],
    }


def show(runs: dict[str, dict[str, Any]]) -> None:
    """Means of the returns, and the ratio of processor times seed by seed."""
    for env in CONFIGS:
        found = {way: [run for key, run in runs.items() if key.startswith(f"{env} {way} ")] for way in WAYS}
        returns = {way: round(mean(run["return"] for run in group), 1) for way, group in found.items()}
        pairs = zip(found["default"], found["none"], strict=False)
        ratios = [first["cpu_seconds"] / second["cpu_seconds"] for first, second in pairs]
        print(f"{env}: return {returns}, processor time {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
