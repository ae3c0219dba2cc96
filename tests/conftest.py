"""What several folders of tests share. Being here puts `launch` and `small_envs` on the import path."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# A shell starts background jobs with Ctrl-C ignored, and nohup the loss of the terminal; so would every process started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own run folder is neither read nor written."""
    monkeypatch.delenv("GYMNAST_HOME", raising=False)


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
