"""ViZDoom's speed: through the contract against the bare package, and workers against Gymnasium's AsyncVectorEnv.

    python benchmarks/vizdoom_speed.py [--seconds 4] [--rounds 6] [--envs 16] [--json FILE]

Everybody plays VizdoomBasic with the same random actions, frame skip 4, gray pictures of 120×160, the smallest that the engine
draws. Contestants take turns (A B B A), so that a machine that gets slower or faster favours nobody. Quiet machine, please.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.config.schema import EnvConfig
from gymnast.envs.make import make_envs

ENV = "VizdoomBasic-v1"
Steps = Callable[[float], float]
"""Steps per second, measured for so many seconds."""


def package_settings() -> dict[str, Any]:
    """The package's env at our resolution."""
    import vizdoom

    resolution, gray = vizdoom.ScreenResolution.RES_160X120, vizdoom.ScreenFormat.GRAY8
    return {"frame_skip": 4, "screen_resolution": resolution, "screen_format": gray}


@contextmanager
def bare_package(_: int) -> Iterator[Steps]:
    """One env of the package in a plain loop."""
    import vizdoom.gymnasium_wrapper  # registers the ids  # noqa: F401

    env = gym.make(ENV, disable_env_checker=True, **package_settings())

    def steps(seconds: float) -> float:
        rng = np.random.default_rng(0)
        env.reset(seed=0)
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            _, _, terminated, truncated, _ = env.step(int(rng.integers(4)))
            count += 1
            if terminated or truncated:
                env.reset()
        return count / (time.perf_counter() - began)

    with closing(env):
        yield steps


@contextmanager
def ours(n_envs: int, **section: Any) -> Iterator[Steps]:
    """Our env behind the contract. Four actions, as the package has them."""
    kwargs = {"actions": ["NOOP", "MOVE_LEFT", "MOVE_RIGHT", "ATTACK"]}
    with closing(make_envs(EnvConfig(id=ENV, kwargs=kwargs, n_envs=n_envs, **section), n_envs)) as envs:
        row = envs.new_row()

        def steps(seconds: float) -> float:
            rng = np.random.default_rng(0)
            envs.reset(list(range(n_envs)), row)
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                envs.step(rng.integers(0, 4, n_envs), row)
                count += n_envs
            return count / (time.perf_counter() - began)

        yield steps


@contextmanager
def asynchronous(n_envs: int) -> Iterator[Steps]:
    """Gymnasium's AsyncVectorEnv over the package's envs: a process each."""
    import vizdoom.gymnasium_wrapper  # registers the ids  # noqa: F401

    settings = package_settings()
    same_step = gym.vector.AutoresetMode.SAME_STEP
    make = [lambda: gym.make(ENV, disable_env_checker=True, **settings) for _ in range(n_envs)]
    envs = gym.vector.AsyncVectorEnv(make, autoreset_mode=same_step)

    def steps(seconds: float) -> float:
        rng = np.random.default_rng(0)
        envs.reset(seed=0)
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            envs.step(rng.integers(0, 4, n_envs))
            count += n_envs
        return count / (time.perf_counter() - began)

    with closing(envs):
        yield steps


def compare(first: Any, second: Any, n_envs: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Both in turns; the ratio of their medians, first over second."""
    found: dict[str, list[float]] = {"first": [], "second": []}
    with first(n_envs) as a, second(n_envs) as b:
        a(seconds / 4), b(seconds / 4)  # engines start with the first episode
        for number in range(rounds):
            order = [("first", a), ("second", b)]
            for name, steps in order if number % 2 == 0 else reversed(order):
                found[name].append(steps(seconds))
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    return {**{name: [round(rate) for rate in rates] for name, rates in found.items()}} | {
        "medians": {name: round(value) for name, value in medians.items()},
        "ratio": round(medians["first"] / medians["second"], 3),
    }


def main() -> None:
    """Both comparisons, as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--workers", type=int, help="instead of what gymnast would choose")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    workers = {"vectorization": "workers"} | ({"n_workers": asked.workers} if asked.workers else {})
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the package writes its files into the current folder
        result = {
            "env": ENV,
            "cores": len(os.sched_getaffinity(0)),
            "contract over bare package, one env": compare(
                lambda n: ours(n, vectorization="inprocess"), bare_package, 1, asked.rounds, asked.seconds
            ),
            f"workers over AsyncVectorEnv, {asked.envs} envs": compare(
                lambda n: ours(n, **workers), asynchronous, asked.envs, asked.rounds, asked.seconds
            ),
        }
    text = json.dumps(result, indent=1)
    print(text)
    if asked.json is not None:
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
