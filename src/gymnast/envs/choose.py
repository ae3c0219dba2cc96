"""How the copies of an env are stepped: natively, by EnvPool, in this process, or in worker processes (ENV-11).

Native forms of our own, in-process envs and workers give the same bits, so a measurement may decide between them. EnvPool and
ALE's vector env give other episodes of the same env: only the tested table and the config decide about them, never a clock,
and the choice is saved with the run.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gymnast import own_code
from gymnast.config.load import Resolved
from gymnast.config.plan import AUTO, MOST_RESUME_STEPS, make_plan
from gymnast.config.schema import EnvConfig, RunConfig
from gymnast.envs import parity
from gymnast.envs.closing import close
from gymnast.envs.families import family_of, where
from gymnast.envs.registry import env_spec, family_of_config
from gymnast.envs.rewards.making import reads_info
from gymnast.envs.time_limits import time_limit_of
from gymnast.envs.wrappers import drawing_mode, needs_single_envs
from gymnast.errors import RAISED_BY_ENVS

if TYPE_CHECKING:
    from gymnast.envs.families.family import NativeForm

WORTH_WORKERS = 0.4
"""Sending actions to a process and waiting for it costs as much as this many milliseconds of stepping."""
PROBE_STEPS, PROBE_SECONDS = 32, 0.2


def under_debugger() -> bool:
    """Whether a debugger is attached; envs then run in-process (RUN-3)."""
    return sys.gettrace() is not None and "coverage" not in type(sys.gettrace()).__module__.lower()


def cores() -> int:
    """How many this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    if allowed is None:
        return os.cpu_count() or 1
    return len(allowed(0))


def choose_vectorization(config: EnvConfig, *, envpool: bool = True) -> tuple[str, str]:
    """`native`, `envpool`, `inprocess` or `workers`, and the reason. `envpool=False` leaves EnvPool out."""
    if under_debugger() and config.vectorization in ("auto", "workers"):
        return "inprocess", "a debugger is attached"
    if config.vectorization in ("auto", "workers") and (name := stays_here(config)):
        return "inprocess", f"'{name}' is an object of this program that cannot be sent to worker processes"
    if config.vectorization != "auto":
        return config.vectorization, "as configured"
    if native_form(config) is not None and not native_engine(config):
        return "native", "this env has a native vector form"
    refusal = why_not_envpool(config) if envpool else ""
    if envpool and refusal is None:
        return "envpool", f"EnvPool {parity.installed_version()} has the same env and is the fastest way to step it"
    kind, reason = _one_by_one(config)
    return kind, f"{reason}; {refusal}" if refusal else reason


def stays_here(config: EnvConfig) -> str | None:
    """The object in an env section that no other process can have; None if all of it can be sent."""
    names = [reference.partition(":")[2] for _, reference in own_code.objects_in({"env": config.model_dump()})]
    if not names:
        return None
    from gymnast.envs.workers import can_be_sent  # cloudpickle

    objects = own_code.remembered()
    return next((name for name in names if name in objects and not can_be_sent(objects[name])), None)


def choose_for_run(config: RunConfig) -> tuple[str, str]:
    """The same for a whole run: envs of EnvPool are reset often, and a small budget would cut their episodes short."""
    if config.plan is not None:
        return choose_vectorization(config.env, envpool=False)  # whose envs cannot be mixed
    kind, reason = choose_vectorization(config.env)
    if config.env.vectorization != "auto" or kind != "envpool" or not (cut := resets_cut_episodes(config)):
        return kind, reason
    kind, reason = choose_vectorization(config.env, envpool=False)
    return kind, f"{reason}; EnvPool would be faster, but {cut}"


def resets_cut_episodes(config: RunConfig) -> str:
    """Where envs that cannot be saved are reset before the first episode need have ended: that, in words. Such runs learn poorly.

    LunarLander in 100,000 steps of 64 envs would never play longer than 64 steps, and no lander comes to rest so soon.
    """
    limit = time_limit_of(config.env)
    steps = make_plan(config, horizon=limit).steps_between_resets
    # Where nothing ends an episode, or only after hours of a game, there is no number to compare them with.
    if limit is None or steps >= min(limit, MOST_RESUME_STEPS):
        return ""
    return f"resets every {steps:,} steps of an env cut episodes that may last {limit:,} (env.resume_every)"


def with_vectorization(resolved: Resolved, *, saved: str | None = None) -> Resolved:
    """The same with `auto` decided, so that the config saved with a run says it and a resume cannot change it.

    `saved` is what the run to resume says; one saved with `auto` is older than EnvPool here and than env.atari, so it was
    stepped in a way that gives equal bits, and stays so.
    """
    env = resolved.config.env
    if env.vectorization != "auto":
        return resolved
    if saved is None:
        kind, reason = choose_for_run(resolved.config)
    elif saved == "auto":
        kind, reason = choose_vectorization(env, envpool=False)
    else:
        kind, reason = str(saved), "as in the resumed run"
    config = resolved.config.model_copy(update={"env": env.model_copy(update={"vectorization": kind})})
    return replace(resolved, config=config, origins={**resolved.origins, "env.vectorization": f"{AUTO}{reason}"})


def foreign_engine(config: EnvConfig) -> str | None:
    """What plays the episodes where it is not Gymnasium's own env; None if it is. Scores are stored with it."""
    if config.vectorization == "envpool":
        row = parity.load().find(config)
        unlike = ""
        if row is not None and not row.passed:
            unlike = ", which is not the same env"
        return f"EnvPool {parity.installed_version()}{unlike}"
    if config.vectorization == "native":
        return native_engine(config)
    return None


def playable(config: EnvConfig) -> EnvConfig:
    """For playing a trained policy where EnvPool was asked for and is missing: Gymnasium's own env does."""
    if config.vectorization != "envpool" or parity.installed_version() is not None:
        return config
    return config.model_copy(update={"vectorization": "auto"})


def why_not_envpool(config: EnvConfig) -> str | None:
    """Why EnvPool may not replace this env, empty if it has no such env; None if it may."""
    row = parity.load().find(config)
    if row is None or config.module is not None:
        return ""
    if not row.passed:
        return f"EnvPool's {row.task} is not the same env ({row.reasons[0]})"
    if why := one_by_one(config):
        return f"EnvPool would be faster, but {why}"
    if names := needs_single_envs(config.wrappers):
        return f"EnvPool would be faster, but wrapper '{names[0]}' runs around each env"
    if row.action_masks and config.action_mask == "auto":
        return "EnvPool would be faster, but gives no action masks (env.action_mask=off ignores them)"
    tested, installed = parity.load().envpool, parity.installed_version()
    if installed is None:
        return 'EnvPool would be faster: pip install "gymnast[envpool]"'
    if installed != tested:
        return f"EnvPool {installed} is not tested here, only {tested} is"
    return None


def one_by_one(config: EnvConfig) -> str:
    """Why its envs cannot be stepped all at once, whatever their wrappers are; empty where nothing stands against it."""
    if config.randomise:
        return "env.randomise gives each env parameters of its own"
    if reads_info(config.rewards):
        return "a term of env.rewards reads infos"
    return ""


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
    spec = env_spec(config.id, config.module)
    family = family_of(spec)
    if family is None:
        return None
    return family.milliseconds(where(spec))


@functools.cache
def _measured_milliseconds(config_json: str) -> float | None:
    """A few random steps of an env that no table knows; None if it fails, which the real envs will then say."""
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
            close(env)
    except RAISED_BY_ENVS:
        return None


def native_form(config: EnvConfig) -> NativeForm | None:
    """Constructor of the native vector form of an env, or None."""
    form = _native(config)
    if isinstance(form, str):
        return None
    return form


def why_not_native(config: EnvConfig) -> str:
    """Why an env has no native vector form here; empty if its family has none at all."""
    form = _native(config)
    if isinstance(form, str):
        return form
    return ""


def native_engine(config: EnvConfig) -> str | None:
    """Who steps the native form, where its random streams are not those of single envs."""
    family = family_of_config(config)
    if family is None or not family.native_engine:
        return None
    needed = family.package
    version = ""
    if needed:
        version = f" ({needed.distribution} {importlib.metadata.version(needed.distribution)})"
    return f"{family.native_engine}{version}"


def _native(config: EnvConfig) -> NativeForm | str:
    if needs_single_envs(config.wrappers):
        return ""
    if why := one_by_one(config):
        return why
    family = family_of_config(config)
    if family is None or family.native is None:
        return ""
    return family.native(config)
