"""Films of short runs are made behind the prompt: nobody at a terminal waits for them, and scripts find them made."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import av
import pytest
from fake_wandb import wait_until
from launch import Terminal, gymnast
from runs_alike import run, small

from gymnast.runs.store import Run
from gymnast.training.showing.behind import Unshown, left_unshown
from gymnast.training.showing.pace import allowance

SHORT = ("CartPole-v1:ppo", "-n", "60000", "train.stop_when_solved=false", "eval.every=30000")
"""Long enough for a film on a fast machine: what takes less than half a second has none."""


@pytest.fixture(autouse=True)
def _usual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside of the tests."""
    monkeypatch.setattr("gymnast.training.showing.ending.allowance", allowance)


def only_run(root: Path) -> Run:
    (folder,) = (path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    return Run(folder)


def test_a_terminal_has_its_prompt_back_before_the_film(tmp_path: Path) -> None:
    """The command ends, its terminal is closed, the run is free; then the film, the table and the report with both."""
    terminal = Terminal("train", *SHORT, cwd=tmp_path)
    assert terminal.end() == 0
    made = only_run(tmp_path / "runs")
    assert "best.mp4, in a moment" in terminal.output
    assert (made.folder / "report.html").exists()
    made.lock().release()
    wait_until(lambda: "<video" in (made.folder / "report.html").read_text())
    about = json.loads((made.videos / "best.json").read_text())
    assert about["run"] == made.id and about["episodes"][0]["length"] > 0
    with av.open(str(made.videos / "best.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) > 1
    assert (made.folder / "rollouts" / "best.parquet").exists()


def test_a_script_finds_the_film_made(tmp_path: Path) -> None:
    """Without a terminal the command ends when all of its files are there."""
    done = gymnast("train", *SHORT, cwd=tmp_path)
    assert done.returncode == 0 and "in a moment" not in done.stdout
    assert (only_run(tmp_path / "runs").videos / "best.mp4").exists()


def test_what_is_left_to_a_fork(tmp_path: Path) -> None:
    """Short runs alone, unless their films are sent on, or there are none."""
    resolved = small("ppo", {"id": "CartPole-v1", "time_limit": 40}, log={"video": True})
    made = run(resolved, tmp_path).run
    config = resolved.config
    assert left_unshown(made, config, ran=2.0, expected=40.0) is not None
    assert left_unshown(made, config, ran=60.0, expected=40.0) is None  # a second is little behind a minute
    assert left_unshown(made, config, ran=0.1, expected=40.0) is None
    for log in ({"video": False, "rollouts": False}, {"sinks": ["tensorboard"], "capture_video": True}):
        other = config.model_copy(update={"log": config.log.model_copy(update=log)})
        assert left_unshown(made, other, ran=2.0, expected=40.0) is None


def test_a_run_that_was_removed_stays_removed(tmp_path: Path) -> None:
    """`gymnast runs rm` right after the prompt: the fork makes no folder again."""
    resolved = small("ppo", {"id": "CartPole-v1", "time_limit": 40}, log={"video": True})
    made = run(resolved, tmp_path).run
    unshown = left_unshown(made, resolved.config, ran=2.0, expected=40.0)
    assert isinstance(unshown, Unshown)
    shutil.rmtree(made.folder)
    began = time.monotonic()
    unshown.show()
    assert not made.folder.exists() and time.monotonic() - began < 5
