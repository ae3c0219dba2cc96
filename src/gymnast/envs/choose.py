"""How the copies of an env are stepped: natively, by EnvPool, in this process, or in worker processes (ENV-11).

Native forms of our own, in-process envs and workers give the same bits, so a measurement may decide between them. EnvPool and
ALE's vector env give other episodes of the same env: only the tested table and the config decide about them, never a clock,
and the choice is saved with the run.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from dataclasses import replace
from typing import Any

from gymnast.config.load import Resolved
from gymnast.config.plan import AUTO
from gymnast.config.schema import EnvConfig
from gymnast.envs import parity
from gymnast.envs.registry import env_spec
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.wrappers import drawing_mode, needs_single_envs

# Milliseconds that one step takes, by where the env lives; measured on one core. The longest beginning counts.
STEP_MILLISECONDS = {
    "gymnasium.envs.classic_control": 0.01,
    "gymnasium.envs.toy_text": 0.01,
    "gymnasium.envs.box2d": 0.04,
    "gymnasium.envs.box2d.car_racing": 4.0,
    "gymnasium.envs.mujoco": 0.06,
    "gymnast": 0.01,
    "minatar": 0.01,
    "minigrid": 0.05,
    "ale_py": 0.5,
    "vizdoom": 0.6,
}
WORTH_WORKERS = 0.4
"""Sending actions to a process and waiting for it costs as much as this many milliseconds of stepping."""
PROBE_STEPS, PROBE_SECONDS = 32, 0.2


def under_debugger() -> bool:
    """Whether a debugger is attached; envs then run in-process (RUN-3)."""
    return sys.gettrace() is not None and "coverage" not in type(sys.gettrace()).__module__.lower()


def cores() -> int:
    """How many this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() or 1 if allowed is None else len(allowed(0))


def choose_vectorization(config: EnvConfig, *, envpool: bool = True) -> tuple[str, str]:
    """`native`, `envpool`, `inprocess` or `workers`, and the reason. `envpool=False` leaves EnvPool out."""
    if under_debugger() and config.vectorization in ("auto", "workers"):
        return "inprocess", "a debugger is attached"
    if config.vectorization != "auto":
        return config.vectorization, "as configured"
    if config.atari is None and native_form(config) is not None:
        return "native", "this env has a native vector form"
    refusal = why_not_envpool(config) if envpool else ""
    if envpool and refusal is None:
        return "envpool", f"EnvPool {parity.installed_version()} has the same env and is the fastest way to step it"
    kind, reason = _one_by_one(config)
    return kind, f"{reason}; {refusal}" if refusal else reason


def with_vectorization(resolved: Resolved, *, saved: str | None = None) -> Resolved:
    """The same with `auto` decided, so that the config saved with a run says it and a resume cannot change it.

    `saved` is what the run to resume says; one saved with `auto` is older than EnvPool here and than env.atari, so it was
    stepped in a way that gives equal bits, and stays so.
    """
    env = resolved.config.env
    if env.vectorization != "auto":
        return resolved
    if saved in (None, "auto"):
        kind, reason = choose_vectorization(env, envpool=saved is None)
    else:
        kind, reason = str(saved), "as in the run that goes on"
    config = resolved.config.model_copy(update={"env": env.model_copy(update={"vectorization": kind})})
    return replace(resolved, config=config, origins={**resolved.origins, "env.vectorization": f"{AUTO}{reason}"})


def playable(config: EnvConfig) -> EnvConfig:
    """For playing a trained policy: Gymnasium's own envs do where EnvPool is missing, for they are the same env."""
    if config.vectorization != "envpool" or parity.installed_version() is not None:
        return config
    return config.model_copy(update={"vectorization": "auto"})


def why_not_envpool(config: EnvConfig) -> str | None:
    """Why EnvPool may not stand for this env, empty where it has no such env; None when it may."""
    row = parity.load().find(config)
    if row is None or config.module is not None:
        return ""
    if not row.passed:
        return f"EnvPool's {row.task} is not the same env ({'; '.join(row.reasons)})"
    if names := needs_single_envs(config.wrappers):
        return f"EnvPool would be faster, but wrapper '{names[0]}' runs beside each env"
    if row.action_masks and config.action_mask == "auto":
        return "EnvPool would be faster, but gives no action masks (env.action_mask=off does without)"
    tested, installed = parity.load().envpool, parity.installed_version()
    if installed is None:
        return 'EnvPool would be faster: pip install "gymnast[envpool]"'
    if installed != tested:
        return f"EnvPool {installed} is not tested here, only {tested} is"
    return None


def _one_by_one(config: EnvConfig) -> tuple[str, str]:
    """In this process or in workers, by what one step costs."""
    if config.n_envs == 1 or cores() == 1:
        return "inprocess", "one env" if config.n_envs == 1 else "one core"
    known = _known_milliseconds(config)
    cost = _measured_milliseconds(config.model_dump_json()) if known is None else known
    if cost is None:
        return "inprocess", "what a step costs could not be measured"
    took = f"a step takes about {cost:.2g} ms"
    if cost < WORTH_WORKERS:
        return "inprocess", f"{took}, too little for worker processes"
    return "workers", f"{took}, worth a process per core"


def _known_milliseconds(config: EnvConfig) -> float | None:
    if drawing_mode(config.wrappers):
        return None  # drawing takes longer than most envs
    entry = env_spec(config.id, config.module).entry_point
    where = entry if isinstance(entry, str) else getattr(entry, "__module__", "")
    names = [name for name in STEP_MILLISECONDS if where == name or where.startswith((f"{name}.", f"{name}:"))]
    return STEP_MILLISECONDS[max(names, key=len)] if names else None


@functools.cache
def _measured_milliseconds(config_json: str) -> float | None:
    """A few random steps of an env that no table knows; None where it fails, which the real envs will then say."""
    from gymnast.envs.make import make_one

    try:
        env = make_one(EnvConfig.model_validate_json(config_json))
        try:
            env.reset(seed=0)
            env.action_space.seed(0)
            began, steps = time.perf_counter(), 0
            while steps < PROBE_STEPS and time.perf_counter() - began < PROBE_SECONDS:
                _, _, terminated, truncated, _ = env.step(env.action_space.sample())
                steps += 1
                if terminated or truncated:
                    env.reset()
            return 1000 * (time.perf_counter() - began) / steps
        finally:
            env.close()
    except Exception:
        return None


def native_form(config: EnvConfig) -> Any:
    """Constructor of the native vector form of an env, or None."""
    if needs_single_envs(config.wrappers):
        return None
    if config.id == "CartPole-v1" and set(config.kwargs) <= {"sutton_barto_reward"}:
        from gymnast.envs.families.classic import CartPoleVector

        limit = time_limit_of(config)
        return functools.partial(CartPoleVector, max_episode_steps=limit, **config.kwargs) if limit else None
    if config.id.startswith("gymnast/"):
        from gymnast.envs.families.bandits.vector import native_bandit

        return native_bandit(config, time_limit_of(config))
    if config.atari is not None:
        from gymnast.envs.families.atari.vector import make_native, why_not_native

        limit, threads = time_limit_of(config), config.n_workers if isinstance(config.n_workers, int) else cores()
        return make_native(config, limit, threads) if limit and why_not_native(config.atari) is None else None
    return None
