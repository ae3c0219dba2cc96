"""Env packages that others wrote, each in a virtual environment of its own under `.peers/foreign/`.

An environment is cheap: one `.pth` file lets it see what is installed next to the interpreter that runs this script
(torch, gymnasium and the rest of `constraints.txt`), so pip adds only the env package and what that needs. What an env
package wants in another version goes into its own environment and comes first there; pip never touches the shared one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness import ROOT
from ruamel.yaml import YAML

LIST = ROOT / "benchmarks" / "queues" / "foreign_envs.yaml"
HOME = ROOT / ".peers" / "foreign"
INSTALL_SECONDS = 420.0


@dataclass(frozen=True)
class ForeignEnv:
    """One env of a package."""

    id: str
    kwargs: dict[str, Any]
    settings: tuple[str, ...]
    """More words for `gymnast train`."""


@dataclass(frozen=True)
class Package:
    """What to install, what to import, and which envs to try."""

    name: str
    module: str
    """Importing it registers the envs with Gymnasium."""
    install: tuple[str, ...]
    alone: tuple[str, ...]
    """Installed without what they say they need: pins of theirs contradict Gymnasium 1.4 or the tested set."""
    instead: tuple[str, ...]
    """What takes the place of a pin of the tested set, for packages that do not work with that version."""
    envs: tuple[ForeignEnv, ...]

    @property
    def python(self) -> Path:
        """The interpreter that sees the package."""
        return HOME / self.name / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """Written when everything was installed; says what."""
        return HOME / self.name / "installed.json"


def packages() -> list[Package]:
    """The list, as the file has it."""
    return [_package(entry) for entry in YAML(typ="safe").load(LIST.read_text(encoding="utf-8"))]


def _package(entry: dict[str, Any]) -> Package:
    name = entry["package"]
    alone = tuple(entry.get("alone", ()))
    install = tuple(entry.get("install", () if alone else (name,)))
    envs = tuple(
        ForeignEnv(env["id"], dict(env.get("kwargs", {})), tuple(env.get("settings", ()))) for env in entry["envs"]
    )
    return Package(name, entry["module"], install, alone, tuple(entry.get("instead", ())), envs)


def install(package: Package) -> str:
    """Make the environment unless it is there already; returns why that did not work, or an empty string."""
    wanted = wants(package)
    if package.stamp.exists() and json.loads(package.stamp.read_text()) == wanted:
        return ""
    folder = HOME / package.name
    venv.create(folder, with_pip=False, clear=True)
    shared = Path(sysconfig.get_path("purelib"))
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (site / "tested_set.pth").write_text(f"{shared}\n")
    pip = [package.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    (folder / "constraints.txt").write_text(_constraints(package))
    constraints = ["-c", folder / "constraints.txt"]
    calls = []
    if package.install:
        calls.append([*pip, *constraints, *package.install, *package.instead])
    if package.alone:
        calls.append([*pip, "--no-deps", *package.alone])
    for call in calls:
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"pip did not end within {INSTALL_SECONDS:.0f} s"
        if done.returncode != 0:
            return _reason(done.stderr)
    package.stamp.write_text(json.dumps(wanted))
    return ""


def wants(package: Package) -> dict[str, Any]:
    """What is installed for it."""
    return {name: list(getattr(package, name)) for name in ("install", "alone", "instead")}


def _constraints(package: Package) -> str:
    """The tested set, but for what the package wants otherwise."""
    replaced = {re.split(r"[<>=!~]", wish)[0] for wish in package.instead}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return "".join(f"{line}\n" for line in lines if line.partition("==")[0] not in replaced)


def _reason(stderr: str) -> str:
    """The first error of pip, without addresses and paths."""
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    text = errors[0] if errors else "pip failed without an error"
    return re.sub(r"\S*(://|/)\S*", "…", text)[:200]


def versions(package: Package) -> dict[str, str]:
    """Of everything that lies in the package's own environment, and of what decides how gymnast runs."""
    code = (
        "import importlib.metadata as m, json, sys\n"
        "own = {d.name: d.version for d in m.distributions(path=[p for p in sys.path if p.startswith(sys.prefix)])}\n"
        "shared = {name: m.version(name) for name in ('gymnasium', 'numpy', 'torch')}\n"
        "print(json.dumps(shared | own))\n"
    )
    done = subprocess.run([package.python, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def definition(package: Package, env: ForeignEnv) -> dict[str, Any]:
    """Everything that was asked for; a record of something else is not reused."""
    return {
        "package": package.name,
        "module": package.module,
        **wants(package),
        **json.loads(json.dumps(asdict(env))),
    }
