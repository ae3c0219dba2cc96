"""From an `EnvConfig` to running envs: imports, native families, vectorisation, wrappers (ENV-7, ENV-11)."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
import warnings
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled
from gymnasium.error import Error as GymnasiumError

from gymnast.config.files import known_env_ids
from gymnast.config.schema import EnvConfig, WrapperConfig
from gymnast.envs.actions import parts
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.spaces import leaves
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import TIME_LIMIT, check_names, wrap
from gymnast.envs.wrappers.vector import ActionClip
from gymnast.errors import ConfigError, GymnastError, MissingPackageError, UsageError, did_you_mean
from gymnast.redaction import expand

# Packages that register their envs on import, by id prefix, and the extra that installs them.
FAMILIES = {
    "ALE/": ("ale_py", "atari"),
    "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom"),
    "MiniGrid-": ("minigrid", "minigrid"),
    "MinAtar/": ("minatar.gym", "minatar"),
}
log = logging.getLogger("gymnast")


def env_spec(env_id: str, module: str | None = None) -> gym.envs.registration.EnvSpec:
    """Gymnasium's own record of an env, with families imported first; a clear error for unknown ids."""
    if module:
        _import(module, f"env.module ({module})")
    elif ":" in env_id:  # Gymnasium's own way to name the module that registers an env
        _import(env_id.split(":", 1)[0], f"The module of '{env_id}'")
    env_id = env_id.rpartition(":")[2]
    for prefix, (package, extra) in FAMILIES.items():
        if env_id.startswith(prefix):
            try:
                importlib.import_module(package)
            except ImportError:
                raise MissingPackageError(f"Environment '{env_id}'", extra) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return gym.spec(env_id)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Cannot import '{error.name}' for environment '{env_id}': install it or check the name."
        ) from None
    except GymnasiumError:
        known = sorted({*known_env_ids(), *gym.registry})
        raise UsageError(
            f"Unknown environment '{env_id}'.{did_you_mean(env_id, known)} `gymnast env list` shows what is installed."
        ) from None


def _import(module: str, what: str) -> None:
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - users' env modules lie where they start the command
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{what} cannot be imported: {error}.") from None
    finally:
        sys.path.pop(0)


def time_limit_of(config: EnvConfig) -> int | None:
    """Steps after which episodes are cut off: the config's, a `time_limit` wrapper's, or the registered limit."""
    limits = [_wrapper_limit(wrapper) for wrapper in config.wrappers if wrapper.id == TIME_LIMIT]
    if config.time_limit or limits:
        return min([config.time_limit] if config.time_limit else limits)
    return env_spec(config.id, config.module).max_episode_steps


def _wrapper_limit(wrapper: WrapperConfig) -> int:
    steps = wrapper.args.get("steps")
    if set(wrapper.args) != {"steps"} or isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ConfigError(f"Wrapper 'time_limit' needs steps, a whole number of at least 1 (got {wrapper.args}).")
    return steps


def make_one(config: EnvConfig, render_mode: str | None = None) -> gym.Env:
    """One bare env as the workers and the in-process adapter use it."""
    spec = env_spec(config.id, config.module)
    limit = time_limit_of(config)
    kwargs: dict[str, Any] = expand(config.kwargs, "env.kwargs")
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return gym.make(spec, max_episode_steps=limit, disable_env_checker=True, **kwargs)
    except (ImportError, DependencyNotInstalled) as error:
        raise UsageError(f"Environment '{config.id}' needs a package that is not installed: {error}") from None
    except GymnastError:
        raise
    except Exception as error:  # envs check their arguments in many ways
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"Environment '{config.id}' cannot be made with env.kwargs {config.kwargs}: {what}") from error


def under_debugger() -> bool:
    """Whether a debugger is attached; envs then run in-process (RUN-3)."""
    return sys.gettrace() is not None and "coverage" not in type(sys.gettrace()).__module__.lower()


def choose_vectorization(config: EnvConfig) -> tuple[str, str]:
    """`native`, `inprocess` or `workers`, and the reason."""
    if under_debugger() and config.vectorization == "workers":
        return "inprocess", "a debugger is attached"
    if config.vectorization != "auto":
        return config.vectorization, "as configured"
    if _native(config) is not None:
        return "native", "this env has a native vector form"
    return "inprocess", "stepping in this process is fastest for cheap envs"


def _native(config: EnvConfig) -> Any:
    """Constructor of the native vector form of an env, or None."""
    if config.id == "CartPole-v1" and set(config.kwargs) <= {"sutton_barto_reward"}:
        from gymnast.envs.families.classic import CartPoleVector

        limit = time_limit_of(config)
        return functools.partial(CartPoleVector, max_episode_steps=limit, **config.kwargs) if limit else None
    return None


def make_envs(config: EnvConfig, n_envs: int, *, render_mode: str | None = None) -> VectorEnv:
    """N running envs behind the contract, wrapped as configured."""
    check_names(config.wrappers)
    kind, reason = choose_vectorization(config)
    if render_mode is not None:
        kind = "inprocess"
    log.debug("vectorization %s: %s", kind, reason)
    mask = config.action_mask == "auto"
    make = functools.partial(make_one, config, render_mode)
    envs: VectorEnv
    if kind == "native":
        native = _native(config)
        if native is None:
            raise UsageError(
                f"'{config.id}' has no native vector form here: set env.vectorization to inprocess or workers."
            )
        envs = native(n_envs)
    elif kind == "workers":
        from gymnast.envs.workers import WorkerPool

        n_workers = config.n_workers if isinstance(config.n_workers, int) else min(n_envs, os.cpu_count() or 1)
        make_one(config).close()  # a wrong id or argument is one clear error here, not one per worker
        envs = WorkerPool(
            make,
            n_envs,
            n_workers=n_workers,
            start_method=config.start_method,
            timeout=config.worker_timeout,
            on_failure=config.on_worker_failure,
            max_restarts=config.max_restarts,
            action_mask=mask,
        )
    else:
        envs = InProcessVector(make, n_envs, action_mask=mask)
    wrapped = wrap(envs, config.wrappers)
    if isinstance(wrapped.action_space, spaces.Box) and not any(w.id == "action_clip" for w in config.wrappers):
        wrapped = ActionClip(wrapped)
    return wrapped


def generic_defaults(env_id: str, algorithm: str, section: dict[str, Any] | None = None) -> dict[str, Any]:
    """Sensible settings for any installed env, chosen from its spaces (ENV-7); `section` is what the user says of it."""
    known = {key: value for key, value in (section or {}).items() if key in ("module", "kwargs", "time_limit")}
    env = make_one(EnvConfig.model_validate({**known, "id": env_id}))
    try:
        observation, action, spec = env.observation_space, env.action_space, env.spec
    finally:
        env.close()
    continuous = any(isinstance(part, spaces.Box) for part in parts(action))
    vector = any(isinstance(leaf, spaces.Box) and leaf.dtype.kind == "f" for _, _, leaf in leaves(observation))
    threshold = spec.reward_threshold if spec else None
    settings: dict[str, Any] = {
        "env": {"id": env_id, "n_envs": 8},
        "policy": {"normalize_obs": bool(vector)},
        "algo": {"id": algorithm},
        "train": {"env_steps": 1_000_000 if continuous else 500_000},
        "spec": {"horizon": spec.max_episode_steps if spec else None},
    }
    if threshold is not None:
        settings["spec"] |= {"solved_at": float(threshold), "solved_source": "Gymnasium's registry (reward_threshold)"}
    if algorithm == "ppo":
        settings["algo"] |= (
            {"n_steps": 256, "batch_size": 0.0625, "n_epochs": 10, "normalize_reward": True}
            if continuous
            else {"n_steps": 128, "batch_size": 0.25, "n_epochs": 4, "ent_coef": 0.01}
        )
        settings["algo"]["learning_rate"] = 3e-4 if continuous else 1e-3
    elif algorithm == "reinforce" and (spec is None or spec.max_episode_steps is None):
        raise UsageError(f"REINFORCE plays whole episodes and '{env_id}' has no time limit: set env.time_limit.")
    return settings
