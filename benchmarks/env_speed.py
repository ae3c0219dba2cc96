"""What our contract costs: env-only throughput against the bare packages with 64 envs: `python benchmarks/env_speed.py`.

Random actions drawn beforehand, one process per run. Pairs: Gymnasium's SyncVectorEnv (SAME_STEP, no env checker) against
our in-process adapter, Gymnasium's native CartPole against ours, and EnvPool against our adapter of it, where installed.
The bare contestants do less: no copy into the caller's arrays, no returns and lengths; the native CartPole and EnvPool
reset a step late. Bar (issue 5): ≥ 0.9 of the bare package for each.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from contestants import all_versions
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from harness import finish, interleave, parser, ratio, spread, verdict
from process import run_process

from gymnast.config.schema import EnvConfig
from gymnast.envs import parity
from gymnast.envs.actions import random_actions
from gymnast.envs.choose import cores
from gymnast.envs.make import make_envs
from gymnast.envs.registry import env_spec

ENVS = ["CartPole-v1", "MountainCar-v0", "Taxi-v4", "LunarLander-v3", "HalfCheetah-v5", "MinAtar/Breakout-v0"]
WAYS = {"inprocess": ENVS, "native": ["CartPole-v1"], "envpool": ENVS}
BAR = 0.9
WARM_UP, DRAWN = 32, 64


def envpool_task(env_id: str) -> str | None:
    """EnvPool's name of an env; None where it has no such env or is not installed."""
    if importlib.util.find_spec("envpool") is None:
        return None
    import envpool

    row = parity.load().find(EnvConfig(id=env_id))
    task = row.task if row else env_id
    return task if task in envpool.list_all_envs() else None


def pairs() -> list[tuple[str, str]]:
    """Envs and ways to step them that can be measured here."""
    every = [(env_id, way) for way, env_ids in WAYS.items() for env_id in env_ids]
    return [(env_id, way) for env_id, way in every if way != "envpool" or envpool_task(env_id)]


def bare(env_id: str, way: str, n_envs: int) -> Callable[[np.ndarray], Any]:
    """The package's own step, after a reset."""
    spec = env_spec(env_id)
    if way == "envpool":
        import envpool

        pool = envpool.make_gymnasium(envpool_task(env_id), num_envs=n_envs, num_threads=min(n_envs, cores()), seed=0)
        pool.reset()
        return pool.step
    if way == "native":
        envs = gym.make_vec(env_id, num_envs=n_envs, vectorization_mode="vector_entry_point")
    else:
        made_one = [lambda: gym.make(spec, disable_env_checker=True)] * n_envs
        envs = SyncVectorEnv(made_one, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=0)
    return envs.step


def ours(env_id: str, way: str, n_envs: int) -> Callable[[np.ndarray], Any]:
    """Our step into a row, after a reset."""
    config = EnvConfig(id=env_id, n_envs=n_envs, vectorization=way, action_mask="off" if way == "envpool" else "auto")  # type: ignore[arg-type]
    envs = make_envs(config, n_envs)
    row = envs.new_row()
    envs.reset(list(range(n_envs)), row)
    return lambda actions: envs.step(actions, row)


def measure(env_id: str, way: str, who: str, n_envs: int, seconds: float) -> float:
    """Agent steps per second."""
    step = (ours if who == "gymnast" else bare)(env_id, way, n_envs)
    space = gym.make(env_spec(env_id), disable_env_checker=True).action_space
    random = np.random.default_rng(0)
    drawn = [random_actions(space, n_envs, random).astype(space.dtype) for _ in range(DRAWN)]
    for actions in drawn[:WARM_UP]:
        step(actions)
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for actions in drawn:
            step(actions)
        steps += len(drawn)
    return steps * n_envs / (time.perf_counter() - begin)


def contestant(env_id: str, way: str, who: str, n_envs: int, seconds: float) -> Callable[[int], dict[str, Any]]:
    """A run in a process of its own."""
    command = [sys.executable, Path(__file__), "--only", env_id, way, who, "--n-envs", n_envs, "--seconds", seconds]

    def run(index: int) -> dict[str, Any]:
        process = run_process([str(part) for part in command], env={"OMP_NUM_THREADS": "1"})
        return process.json_line() | {"foreign": process.foreign}

    return run


def main() -> None:
    """All pairs, interleaved, in one results file."""
    made = parser(__doc__)
    made.add_argument("--pairs", type=int, default=6)
    made.add_argument("--n-envs", type=int, default=64)
    made.add_argument("--seconds", type=float, default=4.0, help="per run")
    made.add_argument("--only", nargs=3, metavar=("ENV", "WAY", "WHO"), help="one run in this process, as JSON")
    options = made.parse_args()
    if options.only:
        rate = measure(*options.only, options.n_envs, options.seconds)
        print(json.dumps({"steps_per_second": rate}))
        return
    found = {f"{env_id}, {way}": (env_id, way) for env_id, way in pairs()}
    contestants = {
        f"{name}: {who}": contestant(env_id, way, who, options.n_envs, options.seconds)
        for name, (env_id, way) in found.items()
        for who in ("bare", "gymnast")
    }
    config = {"pairs": options.pairs, "n_envs": options.n_envs, "seconds": options.seconds, "versions": all_versions()}
    record = interleave("env_speed", config, contestants, options.pairs, quiet=not options.no_wait)
    summary: dict[str, Any] = {}
    for name in found:
        for who in ("bare", "gymnast"):
            summary[f"{name}: {who} steps/s"] = spread(record, "steps_per_second", f"{name}: {who}")
        summary[f"{name}: gymnast ÷ bare"] = ratio(record, "steps_per_second", f"{name}: gymnast", f"{name}: bare")
    worst = min(summary[f"{name}: gymnast ÷ bare"]["median"] for name in found)
    summary["bar"] = verdict(worst, f"≥ {BAR} of the bare package for every env", at_least=BAR)
    finish(record, summary)


if __name__ == "__main__":
    main()
