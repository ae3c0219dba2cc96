"""What messages tell people to install exists: every extra they name is one of the package's own."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from gymnast.envs.families import SHIPPED
from gymnast.envs.packages import ENV_FAMILIES
from gymnast.metrics.sinks.tracked import SHIPPED as TRACKERS

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
NAMED = re.compile(r"gymnast\[([\w,-]+)\]")


def extras_in(text: str) -> set[str]:
    """`gymnast[atari,box2d]` → atari, box2d."""
    return {extra for found in NAMED.findall(text) for extra in found.split(",")}


def test_every_extra_in_a_message_is_real() -> None:
    """In the text of the sources, in the docs, and as an argument of the error that writes the line."""
    for path in [*SOURCES, *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        assert extras_in(path.read_text(encoding="utf-8")) <= EXTRAS, path
    packages = [family.package for family in SHIPPED if family.package is not None]
    assert {package.extra for package in packages if package.extra} <= EXTRAS
    assert extras_in(" ".join(install for _, _, install in ENV_FAMILIES.values() if install)) <= EXTRAS


def test_every_missing_package_is_installed_by_a_real_extra() -> None:
    """`MissingPackageError(what, extra)` names one by a word; the error of a family takes it from the family's record."""
    named: dict[str, list[str]] = {}
    from_records = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "MissingPackageError":
                continue
            if node.keywords:
                from_records.append((path.name, ast.unparse(node.keywords[0])))
            else:
                named.setdefault(path.name, []).append(ast.literal_eval(node.args[1]))
    assert sum(map(len, named.values())) >= 5
    assert {extra for extras in named.values() for extra in extras} <= EXTRAS, named
    frames = [("frames.py", "package='polars'"), ("frames.py", "package=name")]  # of other people's: by their names
    tracker = ("tracked.py", "package=f'gymnast[{cls.name}]'")
    assert sorted(from_records) == [*frames, ("registry.py", "package=family.package.install"), tracker]
    assert set(TRACKERS) <= EXTRAS
