"""Whether a change of the code cost speed, start-up time or memory.

    python benchmarks/before_after.py --before PYTHON [--setting NAME …] [--pairs 5]

`PYTHON` is the interpreter of an environment in which the version before is installed; after is the one this runs with. Both
train the same configurations in turn (A B, B A, …), so that a machine that is busy for a while hits both. Any
two versions can be compared whose command lines know the settings. Each setting is saved when it is done.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from contestants import OVERRIDES
from harness import RESULTS, disturbed, machine, versions, write
from process import run_process

NAME = "before_after"
NO_EVALUATION = ["train.stop_when_solved=false", "eval.every=100000000", "eval.episodes=1", "env.resume_every=1000000"]


@dataclass(frozen=True)
class Setting:
    """A training to measure, and what is measured of it."""

    config: str
    overrides: list[str]
    env_steps: int
    memory: bool = False


SETTINGS = {
    "zoo": Setting("CartPole-v1:ppo", OVERRIDES["zoo"], 40_000),
    "large": Setting("CartPole-v1:ppo", OVERRIDES["large"], 300_000),
    "lunarlander": Setting("LunarLander-v3:ppo", NO_EVALUATION, 80_000),
    "pong_objects": Setting("ALE/Pong-v5:objects_ppo", NO_EVALUATION, 20_000),
    "pong_pixels": Setting(
        "ALE/Pong-v5:rgb_ppo", [*NO_EVALUATION, "env.n_envs=8", "algo.n_steps=128", "algo.n_epochs=4"], 2_048
    ),
    "start_up": Setting("CartPole-v1:ppo", OVERRIDES["zoo"], 2_000, memory=True),
}


def main() -> None:
    """Measure, and print and keep the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="interpreter of the version before")
    parser.add_argument("--setting", action="append", choices=list(SETTINGS), help="one only; all by default")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--between", nargs=2, metavar=("BEFORE", "AFTER"), help="commits, for the results file")
    options = parser.parse_args()
    path = RESULTS / f"{NAME}.json"
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"settings": {}}
    record |= {"name": NAME, "between": options.between, "machine": machine(), "versions": versions()}
    pythons = {"before": options.before, "after": sys.executable}
    for name in options.setting or SETTINGS:
        rounds = [one_round(SETTINGS[name], pythons, index) for index in range(options.pairs)]
        summary = summary_of(rounds)
        record["settings"][name] = {"setting": vars(SETTINGS[name]), "summary": summary, "rounds": rounds}
        print(f"{name}: {json.dumps(summary)}", flush=True)
        write(path, record)


def one_round(setting: Setting, pythons: dict[str, str], index: int) -> dict[str, Any]:
    """Both versions, every other time in reverse order, on the seed of the round."""
    order = list(pythons) if index % 2 == 0 else list(reversed(pythons))
    return {which: one_run(setting, pythons[which], index) for which in order}


def one_run(setting: Setting, python: str, seed: int) -> dict[str, float | None]:
    """Env steps per second from the end of the second iteration to the last, seconds to the first env step, peak memory."""
    with tempfile.TemporaryDirectory(prefix="gymnast-runs-") as folder:
        words = ["train", setting.config, "--seed", str(seed), "-n", str(setting.env_steps), *setting.overrides]
        process = run_process(
            [python, "-m", "gymnast", *words, "--runs-dir", folder],
            env={"GYMNAST_TRACE_STARTUP": "1"},
            memory=setting.memory,
        )
        if process.exit_code:
            raise SystemExit(f"gymnast train failed:\n{process.text[-3000:]}")
        run = next(path.parent for path in Path(folder).glob("*/config.json") if not path.parent.is_symlink())
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "amends" not in row]
    first, last = rows[1], rows[-1]
    found = re.search(r"first-env-step (\d+\.\d+)", process.text)
    return {
        # Start-up included. Less precise than a rate on a quiet machine, and more precise on a busy one.
        "steps_per_cpu_second": last["env_steps"] / process.cpu,
        "steps_per_second": (last["env_steps"] - first["env_steps"]) / (last["time/seconds"] - first["time/seconds"]),
        "start_up": None if found is None else float(found[1]) - process.started,
        "peak_mb": process.peak_mb,
        "foreign": process.foreign,
    }


def summary_of(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of both, and the mean ratio of the pairs."""
    summary: dict[str, Any] = {"disturbed_rounds": sum(disturbed(one) > 0 for one in rounds)}
    for key in ("steps_per_cpu_second", "steps_per_second", "start_up", "peak_mb"):
        if any(one[which][key] is None for one in rounds for which in one):
            continue
        ratios = [one["after"][key] / one["before"][key] for one in rounds]
        summary[key] = {which: round(median(one[which][key] for one in rounds), 3) for which in ("before", "after")}
        summary[key] |= {"ratio": round(geometric_mean(ratios), 4), "least": min(ratios), "most": max(ratios)}
    return summary


if __name__ == "__main__":
    main()
