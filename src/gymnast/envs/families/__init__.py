"""Env families: a folder each, with one record that says everything about it (ENV-3). Tables elsewhere are built from them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gymnast import plugins
from gymnast.envs.families.atari import ATARI
from gymnast.envs.families.bandits import BANDITS
from gymnast.envs.families.box2d import BOX2D
from gymnast.envs.families.classic import CLASSIC
from gymnast.envs.families.family import Family, within
from gymnast.envs.families.minatar import MINATAR
from gymnast.envs.families.minigrid import MINIGRID
from gymnast.envs.families.mujoco import MUJOCO
from gymnast.envs.families.tasks import TASKS
from gymnast.envs.families.toy_text import TOY_TEXT
from gymnast.envs.families.vizdoom import VIZDOOM

if TYPE_CHECKING:
    import gymnasium as gym
    from gymnasium.envs.registration import EnvSpec

SHIPPED = (CLASSIC, TOY_TEXT, BOX2D, MUJOCO, ATARI, VIZDOOM, MINATAR, MINIGRID, BANDITS, TASKS)
"""In the order in which the doctor names them."""


def shipped_family(env_id: str) -> Family | None:
    """The family of ours whose ids begin like this one."""
    env_id = env_id.rpartition(":")[2]
    return next((family for family in SHIPPED if env_id.startswith(family.prefixes or (" ",))), None)


def family_by_id(env_id: str) -> Family | None:
    """The family whose ids begin like this one, ours or a plug-in's."""
    return shipped_family(env_id) or _plugin_family(env_id.rpartition(":")[2])


def all_prefixes() -> list[str]:
    """How the ids begin that a family brings."""
    shipped = [prefix for family in SHIPPED for prefix in family.prefixes]
    return shipped + [plugin.name for plugin in plugins.installed(plugins.FAMILIES)]


def plugin_families() -> list[Family]:
    """The records of installed packages that can be used; the doctor says what is wrong with the others."""
    found = []
    for name in {plugin.name for plugin in plugins.installed(plugins.FAMILIES)}:
        with contextlib.suppress(plugins.PluginError):
            found.append(_record(name))
    return sorted(dict.fromkeys(found), key=lambda family: family.name)


def family_of(spec: EnvSpec) -> Family | None:
    """The family of a registered env: by where it is defined, else by its id."""
    return _at_home(where(spec)) or family_by_id(spec.id)


def family_of_env(env: gym.Env) -> Family | None:
    """The family of the innermost env."""
    found = _at_home(class_path(env))
    if found is None and env.unwrapped.spec is not None:
        return family_by_id(env.unwrapped.spec.id)
    return found


def where(spec: EnvSpec) -> str:
    """The path of the class or function that makes the env."""
    entry = spec.entry_point
    if isinstance(entry, str):
        return entry.replace(":", ".")
    return f"{getattr(entry, '__module__', '')}.{getattr(entry, '__qualname__', '')}"


def class_path(env: gym.Env) -> str:
    """Module and class of the innermost env."""
    cls = type(env.unwrapped)
    return f"{cls.__module__}.{cls.__qualname__}"


def rendering_advice(spec: EnvSpec) -> str:
    """` What to install` where drawing needs more than Python packages, or an empty string."""
    family = family_of(spec)
    if family is not None and family.rendering_advice:
        return f" {family.rendering_advice}"
    return ""


def choose_renderers() -> None:
    """Let every simulator find its way to draw, for envs that may use any of them."""
    for family in SHIPPED:
        if family.choose_renderer is not None:
            family.choose_renderer()


def _plugin_family(env_id: str) -> Family | None:
    """By the name of its entry point, which is how the ids begin: nothing is imported to see whether it is the one."""
    names = [plugin.name for plugin in plugins.installed(plugins.FAMILIES) if env_id.startswith(plugin.name)]
    if names:
        return _record(max(names, key=len))
    return None


def _record(name: str) -> Family:
    plugin = plugins.find(plugins.FAMILIES, name)
    assert plugin is not None
    record = plugins.load(plugin)
    if not isinstance(record, Family):
        raise plugins.PluginError(f"The {plugin} is no `Family` but a {type(record).__name__}.")
    return record


def _at_home(path: str) -> Family | None:
    return next((family for family in SHIPPED if any(within(path, home) for home in family.homes)), None)
