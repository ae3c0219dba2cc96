"""Packages with entry points, installed for a test: by pip, or as the files that pip would leave."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gymnast import plugins

Install = Callable[..., None]
"""What the fixture `install` gives: installs a package of one module, its code and its entry points by group."""


def pip_install(example: Path, folder: Path, *further: Path) -> Path:
    """Where pip has installed packages from their folders, offline."""
    sources = [folder / "source" / one.name for one in (example, *further)]
    for one, source in zip((example, *further), sources, strict=True):
        shutil.copytree(one, source)  # building leaves files behind
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site", *sources]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def lay_down(folder: Path, package: str, code: str, **entries: str) -> None:
    """The module of a package and its metadata, as pip would leave them."""
    (folder / f"{package}.py").write_text(code)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    sections = [f"[gymnast.{group}]\n{line}\n" for group, line in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(sections))
    forget()


def forget() -> None:
    """What is installed is read once per process."""
    for function in (plugins.installed, plugins.load, plugins._warn_once):
        function.cache_clear()
