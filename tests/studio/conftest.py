"""A real studio process over a store of runs, and a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from launch import gymnast
from studio_process import CHROMIUM, FLAGS, Studio, start_studio


@pytest.fixture(scope="session")
def trained_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two real runs of one config: trained once, copied by whoever changes them."""
    folder = tmp_path_factory.mktemp("store")
    settings = [
        "policy.hidden=[8]",
        "env.n_envs=4",
        "algo.n_steps=64",
        "eval.episodes=5",
        "eval.every=2000",
        "eval.start_fraction=null",
    ]
    for seed in ("1", "2"):
        done = gymnast("train", "CartPole-v1:ppo", "-n", "4096", "--seed", seed, "--quiet", *settings, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder / "runs"


@pytest.fixture
def studios() -> Iterator[Callable[..., Studio]]:
    """Start studios that end with the test."""
    started: list[Studio] = []

    def start(root: Path, *arguments: str, **changes: str | None) -> Studio:
        started.append(start_studio(root, *arguments, **changes))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


@pytest.fixture(scope="module")
def studio(trained_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """One studio for all tests of a file, over copies of the trained runs."""
    root = tmp_path_factory.mktemp("studio") / "runs"
    shutil.copytree(trained_store, root, symlinks=True)
    one = start_studio(root)
    yield one
    one.process.kill()
    one.process.wait()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, studio: Studio) -> Iterator[Any]:
    """A fresh page that may only ask the studio; whatever else it asks for, or complains about, fails the test."""
    context = chromium.new_context(base_url=studio.address, viewport={"width": 1360, "height": 860})
    wrong: list[str] = []
    context.on(
        "request", lambda request: _outside(request.url, studio.address) and wrong.append(f"asked {request.url}")
    )
    opened = context.new_page()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: _is_complaint(message) and wrong.append(message.text))
    yield opened
    context.close()
    assert not wrong, wrong


def _is_complaint(message: Any) -> bool:
    """Chromium also reports every answer that is an error; the page shows its sentence."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def _outside(url: str, address: str) -> bool:
    return not url.startswith((address, address.replace("http", "ws"), "data:", "blob:"))
