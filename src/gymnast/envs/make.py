"""From an `EnvConfig` to running envs behind the contract, wrapped as configured."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import DependencyNotInstalled

from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import choose_vectorization, cores, native_form, why_not_native
from gymnast.envs.closing import close
from gymnast.envs.families import SHIPPED, choose_renderers, family_of
from gymnast.envs.inprocess import InProcessVector, MakeEnv
from gymnast.envs.randomising import randomised
from gymnast.envs.registry import env_spec, family_of_config, missing_package, rules_of
from gymnast.envs.rewards.vector import RewardTerms
from gymnast.envs.time_limits import own_limit
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import check, drawing_mode, needs_single_envs, refuse_single, wrap, wrap_single
from gymnast.envs.wrappers.actions import ActionClip
from gymnast.errors import RAISED_BY_ENVS, GymnastError, UsageError, in_one_line
from gymnast.redaction import expand, logger

if TYPE_CHECKING:
    from gymnast.envs.families.family import NativeForm

NO_LIMIT = -1  # Gymnasium's word for episodes that are never cut off
LANES_FROM = 2
"""Cores from which workers are stepped lane by lane."""
MANY_CORES = 4
"""Cores of which one is the trainer's alone, whatever it computes there."""
WITHOUT_STATE = ("reward_clip", "reward_scale")
"""Wrappers of the whole batch that may as well run in the workers, on a part of it."""
SINGLE_ENVS = ("inprocess", "workers")
"""Ways to step that have every env by itself, so that wrappers can run around it."""
log = logger("gymnast")


def make_one(config: EnvConfig, render_mode: str | None = None) -> gym.Env:
    """One env as the workers and the in-process adapter use it, inside those of its wrappers that run around each env."""
    spec = env_spec(config.id, config.module)
    limit = own_limit(config) or NO_LIMIT
    render_mode = render_mode or drawing_mode(config.wrappers)
    kwargs: dict[str, Any] = expand(config.kwargs, "env.kwargs")
    if render_mode is not None:
        kwargs["render_mode"] = render_mode

    def make(arguments: dict[str, Any]) -> gym.Env:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prepared = _prepared(spec, config, render_mode)
            return gym.make(prepared, max_episode_steps=limit, disable_env_checker=True, **kwargs | arguments)

    try:
        bare = make({})
    except (ImportError, DependencyNotInstalled) as error:
        unknown = UsageError(f"Environment '{config.id}' needs a package that is not installed: {error}")
        raise missing_package(family_of(spec), spec.id) or unknown from None
    except GymnastError as error:  # Gymnasium raises it again, with all arguments after the sentence
        if isinstance(error.__cause__, GymnastError):
            raise error.__cause__ from None
        raise error from None
    except RAISED_BY_ENVS as error:  # envs check their arguments in many ways
        what = in_one_line(error)
        raise UsageError(f"Environment '{config.id}' cannot be made with env.kwargs {config.kwargs}: {what}") from error
    if config.randomise:
        bare = randomised(bare, config.randomise, config.randomise_difficulty, make)
    return wrap_single(bare, config.wrappers)


def _prepared(spec: EnvSpec, config: EnvConfig, render_mode: str | None) -> EnvSpec:
    """The record to make an env from, after its family has done what must come first."""
    family = family_of(spec)
    if render_mode is not None and family not in SHIPPED:
        choose_renderers()  # an env of the user's may draw with any simulator
    if family is None or family.prepare is None:
        return spec
    return family.prepare(spec, config, render_mode)


def make_envs(
    config: EnvConfig, n_envs: int, *, render_mode: str | None = None, one: MakeEnv | None = None
) -> VectorEnv:
    """N running envs behind the contract, wrapped as configured. `one` makes each of them in place of `make_one`."""
    check(config.wrappers)
    kind, reason = choose_vectorization(config)
    if render_mode is not None:
        kind = "inprocess"
    log.debug("vectorization %s: %s", kind, reason)
    if kind not in SINGLE_ENVS:
        refuse_single(config.wrappers, kind)
    mask = config.action_mask == "auto"
    make = one or functools.partial(make_one, config, render_mode)
    envs: VectorEnv
    if kind == "native":
        envs = _native_form(config)(n_envs)
    elif kind == "envpool":
        from gymnast.envs.envpool import make_envpool

        bare = make_one(config.model_copy(update={"wrappers": []}))
        envs = make_envpool(config, n_envs, bare.observation_space, bare.action_space)
        close(bare)
    elif kind == "workers":
        close(make())  # a wrong id or argument is one clear error here, not one per worker
        if by_lanes(config, n_envs):
            return _lane_pool(config, make, n_envs)
        envs = _worker_pool(config, make, n_envs)
    else:
        envs = InProcessVector(make, n_envs, action_mask=mask)
    if kind != "workers":  # whose terms are next to their envs
        envs = with_rewards(envs, config)
    wrapped = wrap(envs, config.wrappers, single_envs=kind in SINGLE_ENVS)
    if isinstance(wrapped.action_space, spaces.Box) and not any(w.id == "action_clip" for w in config.wrappers):
        wrapped = ActionClip(wrapped)
    return wrapped


def with_rewards(envs: VectorEnv, config: EnvConfig) -> VectorEnv:
    """The envs with the terms of the config's reward, if it has any."""
    if config.rewards is None:
        return envs
    return RewardTerms(envs, config.rewards)


def _worker_pool(config: EnvConfig, make: MakeEnv, n_envs: int) -> VectorEnv:
    from gymnast.envs.workers import WorkerPool

    if isinstance(config.n_workers, int):
        n_workers = config.n_workers
    else:
        family = family_of_config(config)
        per_core = 1 if family is None else family.workers_per_core
        n_workers = min(n_envs, per_core * cores())
    mask = config.action_mask == "auto"
    around = functools.partial(with_rewards, config=config)
    return WorkerPool(make, n_envs, n_workers=n_workers, action_mask=mask, around=around, **_pool_options(config))


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
    family = family_of_config(config)
    return family is not None and family.by_lanes and whole and cores() >= LANES_FROM and n_envs >= 2


def _lane_pool(config: EnvConfig, make: MakeEnv, n_envs: int) -> VectorEnv:
    from gymnast.envs.lanes import LanePool

    mask = config.action_mask == "auto"
    rules = rules_of(config)
    # Of two cores one acts on images while the other steps; of many cores the trainer has one anyway.
    own_core = cores() >= MANY_CORES or (cores() == 2 and rules is not None and rules.images)
    if isinstance(config.n_workers, int):
        n_workers = config.n_workers
    else:
        n_workers = cores() - own_core
    return LanePool(
        lambda n: wrap(
            with_rewards(InProcessVector(make, n, action_mask=mask), config), config.wrappers, single_envs=True
        ),
        n_envs,
        n_workers=n_workers,
        core_turns=config.core_turns,
        **_pool_options(config),
    )


def _native_form(config: EnvConfig) -> NativeForm:
    native = native_form(config)
    if native is None:
        why = why_not_native(config)
        because = f" ({why})" if why else ""
        raise UsageError(
            f"'{config.id}' has no native vector form here{because}: set env.vectorization to inprocess or workers."
        )
    return native
