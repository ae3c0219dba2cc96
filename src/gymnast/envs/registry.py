"""From an id to Gymnasium's record of the env: families and modules are imported first (ENV-7)."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.error import Error as GymnasiumError

from gymnast import own_code, plugins
from gymnast.config.files import known_env_ids
from gymnast.config.names import unlike_any_preset
from gymnast.envs.families import all_prefixes, choose_renderers, family_by_id, family_of, shipped_family
from gymnast.envs.families.family import Family, Rules
from gymnast.envs.own import spec_of
from gymnast.errors import MissingPackageError, UsageError, did_you_mean

if TYPE_CHECKING:
    from gymnast.config.schema import EnvConfig


def missing_package(family: Family | None, env_id: str) -> MissingPackageError | None:
    """The error with the install line for an env that cannot be made without another package."""
    if family is None or family.package is None or family.package.required:
        return None
    return MissingPackageError(f"Environment '{env_id}'", package=family.package.install)


def family_of_config(config: EnvConfig) -> Family | None:
    """The family of a configured env; an error for an unknown id."""
    return shipped_family(config.id) or family_of(env_spec(config.id, config.module))


def rules_of(config: EnvConfig) -> Rules | None:
    """How the env is played, where the config has a section of its family about that."""
    family = family_of_config(config)
    if family is None or family.rules is None:
        return None
    return family.rules(config)


def env_spec(env_id: str, module: str | None = None) -> gym.envs.registration.EnvSpec:
    """Gymnasium's own record of an env, with families imported first; a clear error for unknown ids."""
    if own_code.is_object(env_id):
        return spec_of(env_id, own_code.find(env_id, "env.id"))
    if module:
        _import(module, f"env.module ({module})")
    elif ":" in env_id:  # Gymnasium's own way to name the module that registers an env
        module = env_id.split(":", 1)[0]
        _import(module, f"The module of '{env_id}'")
    asked, env_id = env_id, env_id.rpartition(":")[2]
    if module is None and unlike_any_preset(env_id):
        raise _unknown(env_id, module)  # registered or not: that depends on what else was imported here
    family = shipped_family(env_id)
    if family is None and env_id not in gym.registry:
        family = family_by_id(env_id)
    if family is not None:
        _register(family, env_id)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _known(env_id) or gym.spec(env_id)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Cannot import '{error.name}' for environment '{env_id}': install it or check the name."
        ) from None
    except GymnasiumError:
        if asked != env_id and hasattr(sys.modules.get(str(module)), env_id):
            return _of_class(asked, own_code.find(asked, "env.id"))
        raise _unknown(env_id, module) from None


def _of_class(env_id: str, made: Any) -> gym.envs.registration.EnvSpec:
    """A class or function of a module; where the module has registered it as well, with all that is said there."""
    for spec in gym.registry.values():
        if made is spec.entry_point or env_id == spec.entry_point:
            return spec
    return spec_of(env_id, made)


def _unknown(env_id: str, module: str | None) -> UsageError:
    """The error for an unknown env; for a module that was imported for it, it says what is missing there."""
    hint = unlike_any_preset(env_id) or did_you_mean(env_id, sorted({*known_env_ids(), *gym.registry}))
    if module is None:
        return UsageError(f"Unknown environment '{env_id}'.{hint} `gymnast env list` shows what is installed.")
    text = f"Module '{module}' was imported, but no environment '{env_id}' is registered."
    if versions := [known for known in gym.registry if known.startswith(f"{env_id}-v")]:
        return UsageError(f"{text} Say {module}:{versions[-1]}.")
    text += hint
    if isinstance(getattr(sys.modules.get(module), env_id, None), type):
        text += f" It has a class of that name: say {module}:{env_id}."
    return UsageError(text)


def ids_like(pattern: str = "*") -> list[str]:
    """The installed ids that fit a pattern (`ALE/*-v5`), with those families imported that are there."""
    for prefix in all_prefixes():
        if fnmatch.fnmatchcase(prefix, pattern) or pattern.startswith(prefix):
            with contextlib.suppress(UsageError):  # asking for any id of a family imports it
                env_spec(prefix)
    return sorted(fnmatch.filter(gym.registry, pattern))


def _register(family: Family, env_id: str) -> None:
    """Import the module that registers the envs of a family."""
    if not family.registers:
        return
    try:
        with warnings.catch_warnings():  # in a worker the ids are known already, and each would be warned of
            warnings.simplefilter("ignore")
            importlib.import_module(family.registers)
    except ImportError as error:
        raise missing_package(family, env_id) or UsageError(
            f"Environment '{env_id}' cannot be registered: {error}."
        ) from None


def _known(env_id: str) -> gym.envs.registration.EnvSpec | None:
    """The registered env; one that is not is looked for among the plug-ins."""
    if env_id not in gym.registry:
        plugins.import_envs(env_id)
    return gym.registry.get(env_id)


def _import(module: str, what: str) -> None:
    choose_renderers()  # a simulator that the module imports decides on its import how it draws (ogbench's MuJoCo)
    own_code.import_module(module, what)
