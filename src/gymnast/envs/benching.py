"""How fast an env is stepped, by number of copies and way of stepping them; nothing is learned here (ENV-12)."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.choose import cores, native_engine, native_form, why_not_envpool
from gymnast.envs.lanes import LanePool
from gymnast.envs.make import LANES_FROM, by_lanes, make_envs
from gymnast.envs.vector import StepRow, VectorEnv, some_rows
from gymnast.errors import UsageError
from gymnast.seeding import env_seeds

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ENOUGH = 32
"""From this many envs on, a way that gets no faster is not tried with more."""
NEAR = 0.9
"""Share of the best speed that counts as fast: more envs mean fewer updates per sample."""
SAMPLE_SECONDS, VECTOR_STEP_SECONDS = 20e-6, 50e-6
"""What a small network is taken to cost besides the env: its update per sample, and its actions per vector step.

The second is measured (docs/performance.md). The first is a chosen round number: PPO on CartPole takes about 10 µs per sample
with four epochs of large minibatches and about 75 µs with rl-zoo's twenty epochs, env included.
"""
LEAST = 8
"""Fewer envs than this are not recommended: their samples resemble each other too much."""


@dataclass(frozen=True)
class Setting:
    """One way to step an env."""

    vectorization: str
    n_envs: int
    n_workers: int | None = None
    """Worker processes, or threads of EnvPool or ALE; None if there are none."""

    def __str__(self) -> str:
        parallel = "processes" if self.vectorization == "workers" else "threads"
        text = f"{self.n_envs} envs, {self.vectorization}"
        if self.n_workers:
            text += f", {self.n_workers} {parallel}"
        return text


@dataclass(frozen=True)
class Measurement:
    """How fast it was."""

    setting: Setting
    steps_per_second: float

    @property
    def training_speed(self) -> float:
        """Steps per second that a small network would be trained at: an env much faster than that gains nothing."""
        learning = SAMPLE_SECONDS + VECTOR_STEP_SECONDS / self.setting.n_envs
        return 1 / (1 / self.steps_per_second + learning)


def ways(config: EnvConfig) -> list[tuple[str, int | None]]:
    """Ways to step this env here, each with a number of processes or threads; the configured ones where they are set."""
    chosen = config.vectorization
    if isinstance(config.n_workers, int):
        parallel = [config.n_workers]
    else:
        parallel = _powers(cores())
    found: list[tuple[str, int | None]] = []
    if chosen in ("auto", "native") and native_form(config) is not None:
        # Threads of an engine may leave a core to this process: the most there are is not always the fastest.
        if config.n_workers == "auto":
            spare = {max(1, cores() - 1)}
        else:
            spare = set()
        threads = sorted({*parallel, *spare}) if native_engine(config) else [None]
        found += [("native", n) for n in threads]
    if chosen == "envpool" or (chosen == "auto" and why_not_envpool(config) is None):
        found += [("envpool", threads) for threads in parallel]
    if chosen in ("auto", "inprocess"):
        found.append(("inprocess", None))
    if chosen in ("auto", "workers"):
        # Lanes leave a core to this process: all there are is not always the fastest.
        if config.n_workers == "auto" and by_lanes(config, LANES_FROM):
            spare = {cores() - 1}
        else:
            spare = set()
        most = sorted({*parallel, *spare})
        found += [("workers", workers) for workers in most if workers > 1 or chosen == "workers"]
    if not found:
        raise UsageError(f"'{config.id}' has no native vector form: leave env.vectorization at auto.")
    return found


def _powers(most: int) -> list[int]:
    return sorted({most, *(2**k for k in range(most.bit_length()) if 2**k <= most)})


def bench(config: EnvConfig, seconds: float, tried: Callable[[Setting], None] | None = None) -> Iterator[Measurement]:
    """Measure every way with ever more envs."""
    for kind, n_workers in ways(config):
        rates: list[float] = []
        for n_envs in SIZES:
            if n_envs < (n_workers or 1):
                continue
            if n_envs > ENOUGH and max(rates[-2:], default=0.0) < 1.05 * max(rates[:-2], default=0.0):
                break
            setting = Setting(kind, n_envs, n_workers)
            if tried is not None:
                tried(setting)
            rate = measure(config, setting, seconds)
            rates.append(rate)
            yield Measurement(setting, rate)


def measure(config: EnvConfig, setting: Setting, seconds: float) -> float:
    """Env steps per second with random actions: the fastest of three thirds, because other work only slows it down."""
    changes = {
        "vectorization": setting.vectorization,
        "n_envs": setting.n_envs,
        "n_workers": setting.n_workers or "auto",
    }
    envs = make_envs(config.model_copy(update=changes), setting.n_envs)
    try:
        row, random = envs.new_row(), np.random.default_rng(0)
        envs.reset(env_seeds(0, "warmup", envs.n_envs), row)
        drawn = [random_actions(envs.action_space, envs.n_envs, random) for _ in range(64)]
        masked = row.mask is not None

        def act(turn: int) -> np.ndarray:
            if masked:
                return random_actions(envs.action_space, envs.n_envs, random, row.mask)
            return drawn[turn % 64]

        for turn in range(3):
            envs.step(act(turn), row)
        if isinstance(envs, LanePool):
            return _lane_rate(envs, drawn, row, seconds)
        return max(_rate(envs, lambda turn: envs.step(act(turn), row), seconds / 3) for _ in range(3))
    finally:
        envs.close()


def _lane_rate(envs: LanePool, actions: Sequence[np.ndarray], row: StepRow, seconds: float) -> float:
    """As training steps them: each lane by itself."""
    rows, turns = [some_rows(row, slots) for slots in envs.lanes], [0] * len(envs.lanes)
    for lane, slots in enumerate(envs.lanes):
        envs.send_lane(lane, actions[0][slots])
    began, played, left = time.perf_counter(), 0, len(rows)
    while left:
        late = time.perf_counter() - began >= seconds
        for lane in envs.ready_lanes():
            envs.recv_lane(lane, rows[lane])
            turns[lane] += 1
            if late:
                left -= 1
            else:
                played += len(rows[lane].reward)
                envs.send_lane(lane, actions[turns[lane] % len(actions)][envs.lanes[lane]])
    return played / seconds


def _rate(envs: VectorEnv, step: Callable[[int], object], seconds: float) -> float:
    began = now = time.perf_counter()
    turn = 0
    while now - began < seconds:
        step(turn)
        turn += 1
        now = time.perf_counter()
    return turn * envs.n_envs / (now - began)


def recommend(measurements: Sequence[Measurement]) -> Measurement | None:
    """The fewest envs that come near the best training speed; at least `LEAST` where that many were tried."""
    if not measurements:
        return None
    several = [one for one in measurements if one.setting.n_envs >= LEAST] or list(measurements)
    best = max(one.training_speed for one in several)
    near = [one for one in several if one.training_speed >= NEAR * best]
    return min(near, key=lambda one: (one.setting.n_envs, -one.steps_per_second))


def machine() -> dict[str, object]:
    """What a speed depends on besides the env."""
    return {"cpu": _cpu(), "cores": cores(), "system": platform.system()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    if names:
        return names[0]
    return platform.processor() or platform.machine()
