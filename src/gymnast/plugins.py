"""Packages that add envs, env families, wrappers, reward shapers, algorithms, policies, sinks and alerts by entry points (DOC-2).

They are looked for only when a name is not ours: a start without them costs nothing, and shipped names always win.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.errors import RAISED_BY_ENVS, UsageError, in_one_line
from gymnast.redaction import logger

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENVS, FAMILIES, WRAPPERS, REWARDS, ALGORITHMS, POLICIES, SINKS, ALERTS = GROUPS = (
    "gymnast.envs",
    "gymnast.families",
    "gymnast.wrappers",
    "gymnast.rewards",
    "gymnast.algorithms",
    "gymnast.policies",
    "gymnast.sinks",
    "gymnast.alerts",
)
KINDS = {
    ENVS: "envs",
    FAMILIES: "env family",
    WRAPPERS: "wrapper",
    REWARDS: "reward shaper",
    ALGORITHMS: "algorithm",
    POLICIES: "policy",
    SINKS: "sink",
    ALERTS: "alerts",
}
log = logger("gymnast")


class PluginError(UsageError):
    """A plug-in that cannot be used; the sentence names its package."""


@dataclass(frozen=True)
class Plugin:
    """One entry point of an installed package."""

    group: str
    entry: EntryPoint

    @property
    def name(self) -> str:
        """What a config calls it."""
        return self.entry.name

    @property
    def package(self) -> str:
        """The package that brings it, with its version."""
        found = self.entry.dist
        if found is None:
            return "an unknown package"
        return f"{found.name} {found.version}"

    def __str__(self) -> str:
        return f"plug-in '{self.name}' ({KINDS[self.group]}) of {self.package}"


@functools.cache
def installed(group: str) -> tuple[Plugin, ...]:
    """The plug-ins of a group; nothing of them is imported."""
    from importlib.metadata import entry_points  # 30 ms that a start with known names does not pay

    return tuple(Plugin(group, entry) for entry in entry_points(group=group))


def find(group: str, name: str) -> Plugin | None:
    """The plug-in of that name, not yet imported; None when no package has one."""
    found = [plugin for plugin in installed(group) if plugin.name == name]
    if len(found) > 1:
        packages = " and ".join(sorted(plugin.package for plugin in found))
        raise PluginError(f"Several packages bring {KINDS[group]} '{name}': {packages}. Uninstall all but one of them.")
    if found:
        return found[0]
    return None


@functools.cache
def load(plugin: Plugin) -> Any:
    """What the entry point names, imported."""
    try:
        if plugin.group == ENVS:
            return _guarded(plugin)
        return plugin.entry.load()
    except RAISED_BY_ENVS as error:  # the package's own code runs here
        raise PluginError(f"The {plugin} cannot be imported: {in_one_line(error)}.") from error


def _guarded(plugin: Plugin) -> Any:
    """Import a module that registers envs; ids that are taken keep their env."""
    import gymnasium as gym

    before = dict(gym.registry)
    try:
        return plugin.entry.load()
    finally:
        for env_id, spec in before.items():
            if gym.registry.get(env_id) is not spec:
                gym.registry[env_id] = spec
                _warn_once(f"The {plugin} registers {env_id}, which is there already: the first one stays.")


def import_envs(prefer: str = "") -> list[Any]:
    """All modules that register envs, those named like the start of `prefer` first; a broken one is a warning."""
    modules = []
    for plugin in sorted(installed(ENVS), key=lambda plugin: not prefer.startswith(plugin.name)):
        try:
            find(ENVS, plugin.name)
            modules.append(load(plugin))
        except PluginError as error:
            _warn_once(str(error))
    return modules


def preset_folders() -> list[Path]:
    """Folders with env files that plug-ins bring (`PRESETS` of their module)."""
    return [Path(module.PRESETS) for module in import_envs() if hasattr(module, "PRESETS")]


@functools.cache
def _warn_once(sentence: str) -> None:
    log.warning("warning: %s", sentence)
