"""From an `EnvConfig` to running envs behind the contract, wrapped as configured."""

from __future__ import annotations

import functools
import logging
import warnings
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled

from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import choose_vectorization, cores, native_form
from gymnast.envs.families import prepare
from gymnast.envs.families.atari import game_spec
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.registry import env_spec, missing_package
from gymnast.envs.time_limits import own_limit
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import check, drawing_mode, needs_single_envs, refuse_single, wrap, wrap_single
from gymnast.envs.wrappers.actions import ActionClip
from gymnast.errors import GymnastError, UsageError
from gymnast.redaction import expand

NO_LIMIT = -1  # Gymnasium's word for episodes that are never cut off
LANES_FROM = 2
"""Cores from which workers are stepped lane by lane."""
MANY_CORES = 4
"""Cores of which one is the trainer's alone, whatever it computes there."""
WITHOUT_STATE = ("reward_clip", "reward_scale")
"""Wrappers of the whole batch that may as well run in the workers, on a part of it."""
SINGLE_ENVS = ("inprocess", "workers")
"""Ways to step that have every env by itself, so that wrappers can run beside it."""
log = logging.getLogger("gymnast")


def make_one(config: EnvConfig, render_mode: str | None = None) -> gym.Env:
    """One env as the workers and the in-process adapter use it, inside those of its wrappers that run beside each env."""
    spec = env_spec(config.id, config.module)
    limit = own_limit(config) or NO_LIMIT
    render_mode = render_mode or drawing_mode(config.wrappers)
    kwargs: dict[str, Any] = expand(config.kwargs, "env.kwargs")
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prepared = prepare(spec, render_mode) if config.atari is None else game_spec(spec, config.atari)
            bare = gym.make(prepared, max_episode_steps=limit, disable_env_checker=True, **kwargs)
    except (ImportError, DependencyNotInstalled) as error:
        unknown = UsageError(f"Environment '{config.id}' needs a package that is not installed: {error}")
        raise missing_package(spec) or unknown from None
    except GymnastError as error:  # Gymnasium raises it anew, with all arguments behind the sentence
        raise (error.__cause__ if isinstance(error.__cause__, GymnastError) else error) from None
    except Exception as error:  # envs check their arguments in many ways
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"Environment '{config.id}' cannot be made with env.kwargs {config.kwargs}: {what}") from error
    return wrap_single(bare, config.wrappers)


def make_envs(config: EnvConfig, n_envs: int, *, render_mode: str | None = None) -> VectorEnv:
    """N running envs behind the contract, wrapped as configured."""
    check(config.wrappers)
    kind, reason = choose_vectorization(config)
    if render_mode is not None:
        kind = "inprocess"
    log.debug("vectorization %s: %s", kind, reason)
    if kind not in SINGLE_ENVS:
        refuse_single(config.wrappers, kind)
    mask = config.action_mask == "auto"
    make = functools.partial(make_one, config, render_mode)
    envs: VectorEnv
    if kind == "native":
        envs = _native_form(config)(n_envs)
    elif kind == "envpool":
        from gymnast.envs.envpool import make_envpool

        one = make_one(config.model_copy(update={"wrappers": []}))
        envs = make_envpool(config, n_envs, one.observation_space, one.action_space)
        one.close()
    elif kind == "workers":
        make_one(config).close()  # a wrong id or argument is one clear error here, not one per worker
        if by_lanes(config, n_envs):
            return _lane_pool(config, n_envs)
        envs = _worker_pool(config, n_envs)
    else:
        envs = InProcessVector(make, n_envs, action_mask=mask)
    wrapped = wrap(envs, config.wrappers, single_envs=kind in SINGLE_ENVS)
    if isinstance(wrapped.action_space, spaces.Box) and not any(w.id == "action_clip" for w in config.wrappers):
        wrapped = ActionClip(wrapped)
    return wrapped


def _worker_pool(config: EnvConfig, n_envs: int) -> VectorEnv:
    from gymnast.envs.workers import WorkerPool

    n_workers = config.n_workers if isinstance(config.n_workers, int) else min(n_envs, cores())
    mask = config.action_mask == "auto"
    make = functools.partial(make_one, config)
    return WorkerPool(make, n_envs, n_workers=n_workers, action_mask=mask, **_pool_options(config))


def _pool_options(config: EnvConfig) -> dict[str, Any]:
    return {
        "start_method": config.start_method,
        "timeout": config.worker_timeout,
        "on_failure": config.on_worker_failure,
        "max_restarts": config.max_restarts,
    }


def by_lanes(config: EnvConfig, n_envs: int) -> bool:
    """Whether workers step without waiting for each other: for games that cost a core's while, on machines with many cores."""
    whole = all(
        wrapper.id in WITHOUT_STATE or wrapper.id in needs_single_envs(config.wrappers) for wrapper in config.wrappers
    )
    return config.atari is not None and whole and cores() >= LANES_FROM and n_envs >= 2


def _lane_pool(config: EnvConfig, n_envs: int) -> VectorEnv:
    from gymnast.envs.lanes import LanePool

    one, mask = functools.partial(make_one, config), config.action_mask == "auto"
    # Of two cores one acts on images while the other steps; of many cores the trainer has one anyway.
    own_core = cores() >= MANY_CORES or (cores() == 2 and config.atari is not None and config.atari.obs == "pixels")
    n_workers = config.n_workers if isinstance(config.n_workers, int) else cores() - own_core
    return LanePool(
        lambda n: wrap(InProcessVector(one, n, action_mask=mask), config.wrappers, single_envs=True),
        n_envs,
        n_workers=n_workers,
        **_pool_options(config),
    )


def _native_form(config: EnvConfig) -> Any:
    native = native_form(config)
    if native is None:
        raise UsageError(
            f"'{config.id}' has no native vector form here{_because(config)}: "
            "set env.vectorization to inprocess or workers."
        )
    return native


def _because(config: EnvConfig) -> str:
    """` (why)` where something else than the env itself is the reason."""
    if config.atari is None:
        return ""
    from gymnast.envs.families.atari.vector import why_not_native

    why = why_not_native(config.atari)
    return f" ({why})" if why else ""
