"""What reward terms and randomisation buy: the rows of docs/results.md about them.

    python benchmarks/shaping.py centring        RMS of the cart's position with and without the centring term, three seeds
    python benchmarks/shaping.py mountain_car    env steps until solved with and without the potential, five seeds
    python benchmarks/shaping.py lander          scores over the randomised range of landers trained in it and without it

Every row goes to benchmarks/results/shaping.jsonl. `--seeds 0-2` takes other seeds, `--overrides` goes to all trainings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gymnast
from gymnast.evaluation.by_parameter import by_parameter

RESULTS = Path(__file__).with_name("results") / "shaping.jsonl"
RANGE = "LunarLander-v3:randomised_ppo"
RANDOMISED = "randomised"
EPISODES = 100
STORE = Path("runs-shaping")
"""Where the runs go, below the current folder."""
QUIET = ("log.video=false", "log.rollouts=false", "log.report=false")


def centring(seeds: list[int], overrides: list[str], only: str | None) -> Iterator[dict[str, Any]]:
    """Mean return and root mean square of the cart's position, over all steps of fresh episodes."""
    for config in wanted(only, "CartPole-v1:ppo", "CartPole-v1:centred_ppo"):
        for seed in seeds:
            agent = gymnast.load(str(train(config, seed, overrides).run.folder))
            traces = [agent.trace(seed=10_000 + k) for k in range(20)]
            positions = np.concatenate([np.array(trace.observations)[:, 0] for trace in traces])
            rms = float(np.sqrt(np.mean(positions**2)))
            yield {"config": config, "seed": seed, "return": agent.evaluate(EPISODES).mean, "rms_x": rms}


def mountain_car(seeds: list[int], overrides: list[str], only: str | None) -> Iterator[dict[str, Any]]:
    """Env steps at the evaluation that solved it; the budget where none did."""
    for config in wanted(only, "MountainCar-v0:ppo", "MountainCar-v0:potential_ppo"):
        for seed in seeds:
            result = train(config, seed, overrides)
            yield {"config": config, "seed": seed, "solved": result.solved, "env_steps": result.env_steps}


def lander(seeds: list[int], overrides: list[str], only: str | None) -> Iterator[dict[str, Any]]:
    """Mean return over the range, by parameter; the second row of a seed is of a lander that never saw it."""
    for config in wanted(only, RANGE, "LunarLander-v3:ppo"):
        for seed in seeds:
            settings = list(overrides)
            if config != RANGE:
                settings.append(f"eval.env={json.dumps([{'time_limit': 1000}, ranges()])}")  # the usual env decides
            result = gymnast.load(str(train(config, seed, settings).run.folder)).evaluate(EPISODES)
            result = result.others.get(RANDOMISED, result)
            parts = by_parameter(result.randomise, result.parameters, result.returns)
            yield {
                "config": config,
                "seed": seed,
                "return": result.mean,
                "std": result.std,
                "by_parameter": {f"{part.parameter} {part.label}": part.mean for part in parts},
            }


def wanted(only: str | None, *configs: str) -> list[str]:
    """Both, or the one that was asked for."""
    return [config for config in configs if only in (None, config)]


def ranges() -> dict[str, Any]:
    """A second setting for evaluations of the plain lander: the range of the randomised one."""
    from gymnast.config.load import resolve

    env = resolve(RANGE).config.env
    drawn = {name: [one.low, one.high] for name, one in env.randomise.items()}  # type: ignore[union-attr]
    return {"name": RANDOMISED, "time_limit": 1000, "randomise": drawn}


def train(config: str, seed: int, overrides: list[str]) -> Any:
    """One run to its end."""
    return gymnast.train(config, *overrides, *QUIET, seed=seed, runs_dir=STORE)


STUDIES = {"centring": centring, "mountain_car": mountain_car, "lander": lander}


def main() -> None:
    """Run a study and print its rows and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--only", help="one of the two configs")
    parser.add_argument("--overrides", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    rows: dict[str, list[dict[str, Any]]] = {}
    for found in STUDIES[given.study](seeds, given.overrides, given.only):
        row = {"study": given.study, **found, "overrides": given.overrides, "at": time.strftime("%Y-%m-%d")}
        rows.setdefault(row["config"], []).append(row)
        print(json.dumps(row), flush=True)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    for config, some in rows.items():
        for key in ("return", "rms_x", "env_steps"):
            if key in some[0]:
                print(f"{config}: median {key} {statistics.median(row[key] for row in some):.6g} of {len(some)} seeds")


if __name__ == "__main__":
    main()
