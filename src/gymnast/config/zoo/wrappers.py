"""Wrapper classes the zoo names, as ours if there is an equal one."""

from __future__ import annotations

from typing import Any

from gymnast.errors import ConfigError

# Class → (what it becomes, our name of each of its arguments).
_WRAPPERS: dict[str, tuple[str, dict[str, str]]] = {
    "ClipAction": ("action_clip", {}),
    "ClipReward": ("reward_clip", {"min_reward": "low", "max_reward": "high"}),
    "FrameStackObservation": ("observation_stack", {"stack_size": "size"}),
    "VecFrameStack": ("observation_stack", {"n_stack": "size"}),
    "TimeLimit": ("time_limit", {"max_episode_steps": "steps"}),
    "FlattenObservation": ("", {}),  # the encoder flattens and joins by itself
    "flatten_dict_observations": ("", {}),
}
_MODULES = ("gymnasium.wrappers", "gym.wrappers", "stable_baselines3.common.vec_env", "rl_zoo3.utils")


def listed(value: Any) -> list[tuple[str, Any]]:
    """Classes and arguments of an `env_wrapper` or `vec_env_wrapper`: a class, or a list of classes and `{class: arguments}`."""
    found: list[tuple[str, Any]] = []
    if value is None:
        items = []
    elif isinstance(value, list):
        items = value
    else:
        items = [value]
    for item in items:
        named = {item: None} if isinstance(item, str) else item
        if not isinstance(named, dict) or len(named) != 1:
            raise ConfigError(f"{item!r} is not a wrapper: a class name or {{class: arguments}} is")
        found += [(name, arguments or {}) for name, arguments in named.items()]
    return found


def wrappers_of(classes: list[tuple[str, Any]]) -> list[str | dict[str, Any]]:
    """Our wrappers for these classes."""
    return [wrapper for name, arguments in classes for wrapper in _wrapper(name, arguments)]


def _wrapper(name: str, arguments: Any) -> list[str | dict[str, Any]]:
    module, _, kind = name.rpartition(".")
    if kind not in _WRAPPERS or not module.startswith(_MODULES):
        raise ConfigError(f"{name} has no counterpart in gymnast")
    ours, parameters = _WRAPPERS[kind]
    if not isinstance(arguments, dict) or not set(arguments) <= set(parameters):
        raise ConfigError(f"{name} cannot have the arguments {arguments!r} in gymnast")
    if not ours:
        return []
    given = {parameters[key]: setting for key, setting in arguments.items()}
    return [{"id": ours, **given} if given else ours]
