"""What a run with very many envs will take, said before anything is allocated."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from gymnast.config.plan import Plan, make_plan
from gymnast.config.schema import EnvConfig, RunConfig
from gymnast.envs.actions import parts
from gymnast.envs.closing import close
from gymnast.envs.make import SINGLE_ENVS, make_one
from gymnast.envs.spaces import allocate, canonical

MANY_ENVS = 10_000
"""From here on a run says what it takes."""
LARGE_ROLLOUT = 2_000_000_000
"""Bytes of one rollout from which on a run says so with fewer envs too."""
BYTES_PER_STEP = 40
"""Of a rollout besides observation and action: reward, value, log-probability, return, advantage, flags."""
COPIES = 2
"""A rollout and the batch that is made of it."""
TRIED = 16
"""Envs that are made to see how long one takes, and how large it is."""


@dataclass(frozen=True)
class Demand:
    """What the envs and one iteration of a run take."""

    n_envs: int
    n_steps: int
    rollout: float
    """Bytes of rollout and batch."""
    envs: float
    """Bytes of the envs, where each is an object of its own."""
    seconds: float
    """To make the envs."""
    budget: int
    """Env steps of the run."""
    available: float | None
    """Bytes of memory this machine has free; None if it does not say."""

    @property
    def is_large(self) -> bool:
        """Whether to ask the user."""
        return self.n_envs >= MANY_ENVS or self.rollout >= LARGE_ROLLOUT

    @property
    def fits(self) -> bool:
        """Whether this machine has the memory."""
        return self.available is None or self.rollout + self.envs < self.available

    def sentences(self) -> list[str]:
        """For the user, before anything is allocated."""
        samples = self.n_envs * self.n_steps
        memory = f"{_gigabytes(self.rollout)} for rollouts"
        if self.envs:
            memory += f" and about {_gigabytes(self.envs)} for envs, which take about {self.seconds:,.0f} s to make"
        found = [
            f"{self.n_envs:,} envs × {self.n_steps:,} steps are {samples:,} samples per iteration. They take {memory}."
        ]
        if self.available is not None:
            found[0] += f" This machine has {_gigabytes(self.available)} free."
        if samples > self.budget:
            found.append(f"One iteration is more than the whole budget of {self.budget:,} env steps.")
        return found


def demand_of(config: RunConfig) -> Demand | None:
    """What a large run will take; None for runs of usual size, which are not looked at."""
    plan = make_plan(config)
    if plan.n_envs < MANY_ENVS and plan.n_envs * plan.n_steps * BYTES_PER_STEP * COPIES < LARGE_ROLLOUT // 100:
        return None
    found = _measured(config.env, plan)
    return found if found.is_large else None


def _measured(config: EnvConfig, plan: Plan) -> Demand:
    env = make_one(config)
    try:
        observation = allocate(canonical(env.observation_space), (1,))
        arrays = observation.values() if isinstance(observation, dict) else [observation]
        size = sum(array.nbytes for array in arrays) + 8 * len(parts(env.action_space))
    finally:
        close(env)
    rollout = COPIES * plan.n_envs * plan.n_steps * float(size + BYTES_PER_STEP)
    envs = seconds = 0.0
    if config.vectorization in SINGLE_ENVS or config.vectorization == "auto":
        envs, seconds = _of_single_envs(config, plan.n_envs)
    return Demand(plan.n_envs, plan.n_steps, rollout, envs, seconds, plan.env_steps, _available())


def _of_single_envs(config: EnvConfig, n_envs: int) -> tuple[float, float]:
    """Bytes and seconds, from a few envs that are made and reset."""
    import tracemalloc  # only here: it slows everything that allocates

    begin = time.perf_counter()
    made = _made(config)
    seconds = time.perf_counter() - begin
    for env in made:
        close(env)
    tracemalloc.start()
    try:
        made = _made(config)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for env in made:
        close(env)
    return size / TRIED * n_envs, seconds / TRIED * n_envs


def _made(config: EnvConfig) -> list[Any]:
    made = [make_one(config) for _ in range(TRIED)]
    for number, env in enumerate(made):
        env.reset(seed=number)
    return made


def _available() -> float | None:
    """Free memory, with what the system would give up for it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            kilobytes = dict(line.split()[:2] for line in file)
        return float(kilobytes["MemAvailable:"]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
