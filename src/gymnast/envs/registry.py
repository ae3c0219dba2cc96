"""From an id to Gymnasium's record of the env: families and modules are imported first (ENV-7)."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import os
import sys
import warnings

import gymnasium as gym
from gymnasium.error import Error as GymnasiumError

from gymnast import plugins
from gymnast.config.files import known_env_ids
from gymnast.errors import MissingPackageError, UsageError, did_you_mean

# Packages that register their envs on import, by id prefix, and the extra that installs them.
FAMILIES = {
    "ALE/": ("ale_py", "atari"),
    "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom"),
    "MiniGrid-": ("gymnast.envs.families.minigrid", "minigrid"),
    "BabyAI-": ("gymnast.envs.families.minigrid", "minigrid"),
    "MinAtar/": ("gymnast.envs.families.minatar", "minatar"),
    "gymnast/": ("gymnast.envs.families.bandits", ""),  # our own
}

# Envs that Gymnasium registers whether or not they can be made, by entry point, and the extra that installs what they need.
NEEDED = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}


def missing_package(spec: gym.envs.registration.EnvSpec) -> MissingPackageError | None:
    """The error with the install line for an env of Gymnasium's own that cannot be made without another package."""
    found = (extra for start, extra in NEEDED.items() if str(spec.entry_point).startswith(start))
    extra = next(found, None)
    return MissingPackageError(f"Environment '{spec.id}'", extra) if extra else None


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
                with warnings.catch_warnings():  # in a worker the ids are known already, and each would be warned of
                    warnings.simplefilter("ignore")
                    importlib.import_module(package)
            except ImportError:
                raise MissingPackageError(f"Environment '{env_id}'", extra) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _known(env_id) or gym.spec(env_id)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Cannot import '{error.name}' for environment '{env_id}': install it or check the name."
        ) from None
    except GymnasiumError:
        known = sorted({*known_env_ids(), *gym.registry})
        raise UsageError(
            f"Unknown environment '{env_id}'.{did_you_mean(env_id, known)} `gymnast env list` shows what is installed."
        ) from None


def ids_like(pattern: str = "*") -> list[str]:
    """The installed ids that fit a pattern (`ALE/*-v5`), with those families imported that are there."""
    for prefix in FAMILIES:
        if fnmatch.fnmatchcase(prefix, pattern) or pattern.startswith(prefix):
            with contextlib.suppress(UsageError):  # asking for any id of a family imports it
                env_spec(prefix)
    return sorted(fnmatch.filter(gym.registry, pattern))


def _known(env_id: str) -> gym.envs.registration.EnvSpec | None:
    """The registered env; one that is not is looked for among the plug-ins."""
    if env_id not in gym.registry:
        plugins.import_envs(env_id)
    return gym.registry.get(env_id)


def _import(module: str, what: str) -> None:
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - users' env modules lie where they start the command
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{what} cannot be imported: {error}.") from None
    finally:
        sys.path.pop(0)
