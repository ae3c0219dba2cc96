"""From what Python gives (an id, a class, an instance, a factory, a config) to the config of one run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from gymnast import own_code
from gymnast.config.files import env_files
from gymnast.config.load import Resolved, resolve
from gymnast.config.schema import RunConfig
from gymnast.config.variants import split_reference
from gymnast.envs.choose import stays_here
from gymnast.envs.defaults import generic_defaults
from gymnast.envs.families import shipped_family
from gymnast.envs.own import copies_of
from gymnast.errors import UsageError
from gymnast.runs.store import Run
from gymnast.runs.trust import given_config, usable

EnvLike = str | gym.Env | type[gym.Env] | Callable[..., gym.Env]
"""What an env may be given as: its id or a config's, an instance, a class, or a function that makes one."""
ConfigLike = Mapping[str, Any] | str | Path | RunConfig
"""What a config may be given as: a mapping, the path of a file, or a `RunConfig`."""


def resolve_run(
    env: EnvLike | None,
    words: Sequence[str],
    algo: str | None,
    config: ConfigLike | None,
    settings: Mapping[str, Any],
) -> Resolved:
    """The config of a run that begins. Words are `key=value` or the name of an algorithm."""
    overrides = [word for word in words if "=" in word]
    named = [word for word in words if "=" not in word]
    if len(named) + (algo is not None) > 1:
        raise UsageError(f"Give only one algorithm (got {', '.join([*named, *([algo] if algo else [])])}).")
    algo = algo or next(iter(named), None)
    keys = dotted(settings)
    if config is not None:
        return _with_config(env, overrides, algo, config, keys)
    if env is None:
        raise UsageError('Say what to train: gymnast.train("CartPole-v1"), or an env class, or config=….')
    return told(_of_env(env, overrides, algo, keys))


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords as keys (`algo__gamma`), and objects in them as references."""
    keys = {name.replace("__", "."): value for name, value in settings.items()}
    for name, key in (("encoder", "policy.encoder"), ("policy", "policy.id"), ("wrappers", "env.wrappers")):
        if name in keys and not isinstance(keys[name], (dict, Mapping)):
            keys[key] = keys.pop(name)
    for key in ("policy.encoder", "policy.id"):
        if key in keys and not isinstance(keys[key], (str, type(None))):
            keys[key] = own_code.reference_to(keys[key])
    if isinstance(wrappers := keys.get("env.wrappers"), (list, tuple)):
        keys["env.wrappers"] = [_wrapper(one) for one in wrappers]
    return keys


def _wrapper(given: Any) -> Any:
    """A wrapper by name, as a mapping, or as a class."""
    if isinstance(given, (str, Mapping)):
        return given
    return own_code.reference_to(given)


def env_reference(env: EnvLike) -> str:
    """What a config calls an env that Python gives."""
    if isinstance(env, str):
        return env
    if isinstance(env, gym.Env):
        return own_code.reference_to(copies_of(env), _name_of(env))
    if not callable(env):
        raise UsageError(
            f"env is a {type(env).__name__}: give an id, a gymnasium.Env, its class, or a function that makes one."
        )
    return own_code.reference_to(env)


def _name_of(env: gym.Env) -> str:
    if env.spec is not None:
        return env.spec.name
    return type(env.unwrapped).__name__


def told(resolved: Resolved) -> Resolved:
    """With a notice where worker processes were asked for and cannot have the env."""
    env = resolved.config.env
    name = stays_here(env)
    if name is None:
        return resolved
    notice = (
        f"'{name}' is an object that cannot be sent to worker processes, so its envs are stepped in this process. "
        "Put it into a module of its own to step them in workers."
    )
    if env.vectorization == "workers":
        warnings.warn(notice, stacklevel=2)
    resolved.notices.append(notice)
    return resolved


# ---- the sources ---------------------------------------------------------------------------------------------------


def _of_env(env: EnvLike, overrides: Sequence[str], algo: str | None, keys: dict[str, Any]) -> Resolved:
    if isinstance(env, str):
        reference = env
        if algo is not None:
            variant = split_reference(env)[1]
            if variant is None:
                reference = f"{env}:{algo}"
            else:
                keys = {"algo.id": algo, **keys}
        return resolve(reference, overrides, settings=keys, generic=generic_defaults)
    reference = env_reference(env)
    preset = _preset_of(env)
    if preset is None:
        return resolve(f"{reference}:{algo or 'ppo'}", overrides, settings=keys, generic=generic_defaults)
    named = f"{preset}:{algo}" if algo else preset
    return resolve(named, overrides, settings={"env.id": reference, **keys}, generic=generic_defaults)


def _preset_of(env: EnvLike) -> str | None:
    """The id whose presets fit an instance; games whose config sets how they are played are not made again from it."""
    if not isinstance(env, gym.Env) or env.spec is None:
        return None
    family = shipped_family(env.spec.id)
    if family is not None and family.rules is not None:
        return None
    if env_files(env.spec.id):
        return env.spec.id
    return None


def _with_config(
    env: EnvLike | None, overrides: Sequence[str], algo: str | None, config: ConfigLike, keys: dict[str, Any]
) -> Resolved:
    if algo is not None:
        keys = {"algo.id": algo, **keys}
    if isinstance(config, RunConfig):
        config = config.model_dump(mode="json")
    if isinstance(config, (str, Path)):
        path = Path(config).expanduser()
        if path.suffix in (".yaml", ".yml") or ":" in path.name:  # FILE.yaml, FILE.yaml:VARIANT
            if env is not None:
                keys = {"env.id": env_reference(env), **keys}
            return told(resolve(str(path), overrides, settings=keys, generic=generic_defaults))
        run = Run(path.parent)
        if path.name == run.config_path.name and run.exists():  # as any use of a run: not everybody's may import code
            if env is not None:
                keys = {"env.id": env_reference(env), **keys}
            return told(usable(run, overrides, keys))
        config = _read(path)
    if _is_whole(config):  # as a run saves it
        if env is not None:
            keys = {"env.id": env_reference(env), **keys}
        return told(given_config(dict(config), overrides, keys))
    given = {**config}
    section = given.get("env")
    if isinstance(section, Mapping) and env is None:
        env = section.get("id")
    if env is None and isinstance(given.get("env"), str):
        env = given.pop("env")
    if env is None:
        raise UsageError("config has no env: give it as the first argument, or as env.id in config.")
    return resolve_run(env, overrides, None, None, {**_flat(given), **keys})


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Sections as dotted keys, which aliases and checks then see; schedules and arguments stay whole."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if key in ("name", "id") or (key == "env" and not isinstance(value, Mapping)):
            continue
        if isinstance(value, Mapping) and key in RunConfig.model_fields:
            found |= {f"{key}.{name}": inner for name, inner in value.items() if (key, name) != ("env", "id")}
        else:
            found[key] = value
    return found


def _is_whole(config: Mapping[str, Any]) -> bool:
    return all(name in config for name in ("name", "env", "algo", "train"))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"Cannot read the config '{path}': {error.strerror or error}.") from None
    except ValueError as error:
        raise UsageError(f"The config '{path}' is not JSON: {error}. A YAML file ends in .yaml.") from None
    if not isinstance(found, dict):
        raise UsageError(f"The config '{path}' holds no mapping.")
    return found
