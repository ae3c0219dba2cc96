"""`gymnast eject`: one readable script, torch and gymnasium only, that repeats a run to the bit (RUN-15)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gymnast.errors import UsageError
from gymnast.hub.ejected.facts import gather
from gymnast.hub.ejected.script import script
from gymnast.runs.files import write_atomic
from gymnast.runs.store import Run


@dataclass(frozen=True)
class Ejected:
    """A script and the sha256 its weights should have."""

    source: str
    expected: str
    resumed: bool
    """The run was interrupted and continued: equal if the resumes were exact, which only a check can tell."""


@dataclass(frozen=True)
class Check:
    """What came out of running a script."""

    digest: str | None
    """None when the script did not get to its end."""
    output: str


def eject(run: Run) -> Ejected:
    """The script of a run; a UsageError says why a run cannot be repeated."""
    facts = gather(run)
    return Ejected(script(facts), facts.expected, facts.resumed)


def write(ejected: Ejected, path: Path) -> None:
    """Write the script whole or not at all."""
    try:
        write_atomic(path, ejected.source)
    except OSError as error:
        raise UsageError(f"The script cannot be written to '{path}': {error.strerror or error}.") from None


def check(path: Path) -> Check:
    """Run a script in a process of its own, where modules of the working folder can be imported as in training."""
    folders = filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH")))
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found = re.search(r"^sha256 ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    return Check(found[1] if found and done.returncode == 0 else None, done.stdout)
