"""What each env family needs installed: module, distribution, and the line that installs it."""

from __future__ import annotations

from collections.abc import Iterable

from gymnast.envs.families import SHIPPED, plugin_families
from gymnast.envs.families.family import Family

Line = tuple[str, str, str | None]
"""Module, distribution, and what pip installs; None for what gymnast itself depends on."""


def _lines(families: Iterable[Family]) -> dict[str, Line]:
    packages = {family.title: family.package for family in families if family.title}
    return {
        title: (package.module, package.distribution, None if package.required else package.install)
        for title, package in packages.items()
        if package is not None
    }


ENV_FAMILIES: dict[str, Line] = {
    **_lines(SHIPPED),
    "rendering (pygame)": ("pygame", "pygame-ce", None),
    "EnvPool": ("envpool", "envpool", "gymnast[envpool]"),
}


def of_plugins() -> dict[str, Line]:
    """The same for the families that installed packages bring; their records are imported."""
    return _lines(plugin_families())
