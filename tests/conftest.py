"""What several folders of tests share. Being here puts `launch` and `small_envs` on the import path."""

from __future__ import annotations

import functools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from installed import Install, forget, lay_down
from order import long_ones_first

# A shell starts background jobs with Ctrl-C ignored, and nohup the loss of the terminal; so would every process started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# The key that marks runs as begun here is the tests' own.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="gymnast-tests-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See `order`."""
    long_ones_first(items)


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own run folder is neither read nor written."""
    monkeypatch.delenv("GYMNAST_HOME", raising=False)


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    """Trainings set torch's threads for their process, which here is that of all later tests.

    Two threads next to another busy process are many times slower than one, and they add in another order.
    """
    _use_one_thread()
    yield
    _use_one_thread()


def _use_one_thread() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _without_envpool() -> Iterator[None]:
    """`auto` chooses the same with and without EnvPool; tests about EnvPool name it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gymnast.envs.parity.installed_version", lambda: None)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs packages of one module each, for this test only."""
    monkeypatch.syspath_prepend(tmp_path)
    registry = dict(gym.registry)
    forget()
    yield functools.partial(lay_down, tmp_path)
    forget()
    for module in tmp_path.glob("*.py"):
        sys.modules.pop(module.stem, None)
    gym.registry.clear()
    gym.registry.update(registry)
