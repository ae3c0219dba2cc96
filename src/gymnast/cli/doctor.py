"""`gymnast doctor`: what this installation can do."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gymnast import plugins
from gymnast.cli.options import AsJson, RunsDir, echo, echo_json
from gymnast.config.algorithms import CONFIGS
from gymnast.envs import packages
from gymnast.envs.families import SHIPPED
from gymnast.envs.wrappers.registry import KINDS
from gymnast.later import Later
from gymnast.runs.store import runs_root

if TYPE_CHECKING:
    import torch
else:
    torch = Later("torch")


def doctor(as_json: AsJson = False, runs_dir: RunsDir = None) -> None:
    """Check Python, torch, devices, env families, codecs, plug-ins and disk."""
    checks = [*_core(), *_families(), *_codec(), *_plugins(), *_disk(runs_dir)]
    if as_json:
        echo_json([{"what": what, "ok": ok, "detail": detail} for what, ok, detail in checks])
    else:
        for what, ok, detail in checks:
            mark = {True: "✓", False: "✗", None: "·"}[ok]
            echo(f"{mark} {what:28s} {detail}")
    if any(ok is False for _, ok, _ in checks):
        raise typer.Exit(1)


Check = tuple[str, bool | None, str]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _core() -> list[Check]:
    checks: list[Check] = [
        (
            "Python",
            sys.version_info >= (3, 11),
            f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        )
    ]
    checks.append(("torch", True, f"{torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} cores"))
    if torch.cuda.is_available():
        checks.append(("GPU", True, torch.cuda.get_device_name(0)))
    else:
        checks.append(("GPU", None, "none found; training runs on the CPU"))
    return checks


def _families() -> list[Check]:
    checks: list[Check] = []
    for name, (module, package, installed_by) in {**packages.ENV_FAMILIES, **packages.of_plugins()}.items():
        version = _version(package)
        if version and importlib.util.find_spec(module):
            checks.append((name, True, f"{package} {version}"))
        elif installed_by is None:
            checks.append((name, False, f"missing: pip install {package}"))
        else:
            checks.append((name, None, f'not installed: pip install "{installed_by}"'))
    return [*checks, *_drawing()]


def _drawing() -> list[Check]:
    """Some families draw through a system library if there is no display."""
    checks: list[Check] = []
    for family in SHIPPED:
        if family.choose_renderer is None or family.package is None or _version(family.package.distribution) is None:
            continue
        what, way = f"rendering ({family.title})", family.choose_renderer()
        checks.append((what, True, way) if way else (what, None, family.rendering_advice))
    return checks


def _codec() -> list[Check]:
    try:
        from av.codec import Codec  # here, because whether it can be imported is the question

        Codec("libx264", "w")
        return [("video (PyAV, H.264)", True, f"av {_version('av')}")]
    except Exception as error:  # any failure to load a codec is the answer
        return [("video (PyAV, H.264)", False, f"{error}; reinstall with: pip install --force-reinstall av")]


def _plugins() -> list[Check]:
    """Each plug-in is imported: whether that works is the answer."""
    shipped = {plugins.ENVS: (), plugins.FAMILIES: (), plugins.WRAPPERS: KINDS, plugins.ALGORITHMS: CONFIGS}
    checks: list[Check] = []
    for group in plugins.GROUPS:
        for plugin in plugins.installed(group):
            what = f"plug-in: {plugins.KINDS[group]} {plugin.name}"
            try:
                plugins.find(group, plugin.name)
                plugins.load(plugin)
            except plugins.PluginError as error:
                checks.append((what, False, str(error)))
                continue
            if plugin.name in shipped[group]:
                checks.append((what, None, f"{plugin.package}, not used: gymnast's own"))
            else:
                checks.append((what, True, plugin.package))
    return checks or [("plug-ins", None, "none installed")]


def _disk(runs_dir: Path | None) -> list[Check]:
    root = runs_root(runs_dir)
    existing = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free / 2**30
    writable = os.access(existing, os.W_OK) and (root.is_dir() or not root.exists())
    note = "" if writable else ", not writable: choose another with --runs-dir or GYMNAST_HOME"
    return [("runs folder", writable and free > 0.5, f"{root}, {free:.0f} GB free{note}")]
