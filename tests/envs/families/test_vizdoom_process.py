"""What engines leave behind: no process after a kill, no file in the user's folder, no shared memory for long (ENV-4)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gymnast.envs.families.vizdoom import leftovers

pytest.importorskip("vizdoom")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends engines on Linux only")
SHARED_MEMORY = Path("/dev/shm")
TRAINER = """
import sys, time
from gymnast.config.schema import EnvConfig
from gymnast.envs.make import make_envs
envs = make_envs(EnvConfig(id="VizdoomBasic-v1", vectorization=sys.argv[1], n_workers=2), 2)
row = envs.new_row()
envs.reset([1, 2], row)
print("ready", flush=True)
import numpy as np
while True:
    envs.step(np.zeros(2, np.int64), row)
"""


def processes() -> dict[int, tuple[int, str]]:
    """Parent and name of every process that has not ended."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, parent, *_ = rest.split()
        if state not in "ZX":
            found[int(entry.name)] = (int(parent), name)
    return found


def below(pid: int) -> dict[int, str]:
    """The descendants of a process, by name."""
    every, found = processes(), {}
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child, (its_parent, name) in every.items():
            if its_parent == parent:
                found[child] = name
                waiting.append(child)
    return found


def gone(pids: set[int], seconds: float = 10.0) -> bool:
    """Whether all of them end in that time."""
    deadline = time.monotonic() + seconds
    while pids & set(processes()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(params=["inprocess", "workers"])
def trainer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that steps two games, in a folder of its own."""
    command = [sys.executable, "-c", TRAINER, request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline().strip() == "ready"
        yield process
        process.kill()


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_leaves_no_engine_behind(trainer: subprocess.Popen[str], number: signal.Signals, tmp_path: Path) -> None:
    engines = {pid for pid, name in below(trainer.pid).items() if name == "vizdoom"}
    assert len(engines) == 2
    everything = set(below(trainer.pid))
    os.kill(trainer.pid, number)
    trainer.wait(10)
    assert gone(engines) and gone(everything)
    assert list(tmp_path.iterdir()) == [], "no _vizdoom.ini and no _vizdoom/ in the folder where somebody trains"


@linux
def test_ctrl_c_in_the_terminal_is_for_the_trainer_alone(trainer: subprocess.Popen[str]) -> None:
    """Engines must go on, so that the last iteration can be finished and saved."""
    engines = {pid for pid, name in below(trainer.pid).items() if name == "vizdoom"}
    group = os.getpgid(trainer.pid)
    assert all(os.getpgid(pid) != group for pid in engines)


@linux
def test_shared_memory_of_killed_engines_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those alone that nobody has open, and only once they are old."""
    block, young = SHARED_MEMORY / "ViZDoomSMtestOfGymnast", SHARED_MEMORY / "ViZDoomSMyoungOfGymnast"
    used = SHARED_MEMORY / "ViZDoomSMusedOfGymnast"
    try:
        for path in (block, young, used):
            path.write_bytes(b"0" * 4096)
        for path in (block, used):
            os.utime(path, (0, 0))
        import mmap

        with used.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
            leftovers.sweep.cache_clear()
            leftovers.sweep()
            assert [path.exists() for path in (block, young, used)] == [False, True, True]
    finally:
        for path in (block, young, used):
            path.unlink(missing_ok=True)


def test_somebody_elses_folder_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs are run from it: it must be this user's and nobody else may write there."""
    monkeypatch.setattr(leftovers.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(leftovers.tempfile, "tempdir", str(tmp_path))
    leftovers._folder.cache_clear()
    try:
        own = leftovers._folder()
        assert own == tmp_path / f"gymnast-vizdoom-{os.getuid()}"
        own.chmod(0o777)
        leftovers._folder.cache_clear()
        other = leftovers._folder()
        assert other != own and other.stat().st_mode & 0o077 == 0
    finally:
        leftovers._folder.cache_clear()
