"""`gymnast plot`, `report` and `video` in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np
import pytest
from launch import gymnast

import gymnast as library
from gymnast.runs.index import list_runs

TINY = ("env.n_envs=2", "algo.n_steps=32", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=4", "eval.every=64")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two seeds of one config."""
    folder = tmp_path_factory.mktemp("house")
    for seed in (1, 2):
        settings = {"train__stop_when_solved": False, "train__checkpoint_every": 64}
        library.train("CartPole-v1:ppo", *TINY, env_steps=192, seed=seed, runs_dir=folder / "runs", **settings)
    return folder


def test_plot(house: Path) -> None:
    """Seeds are one line; the file is what its suffix says; Python draws the same."""
    ids = [row.id for row in list_runs(house / "runs")]
    drawn = gymnast("plot", *ids, cwd=house)
    assert drawn.returncode == 0 and "CartPole-v1:ppo (2 seeds)" in drawn.stdout and "solved at 475" in drawn.stdout
    written = gymnast("plot", *ids, "-m", "train/entropy", "-o", "out/c.svg", cwd=house)
    assert written.returncode == 0 and (house / "out" / "c.svg").read_text().startswith("<svg")
    refused = gymnast("plot", "@last", "-o", "c.jpg", cwd=house)
    assert refused.returncode == 2 and "written as .png, .pdf, .svg or .html" in refused.stderr
    same = library.plot(ids, "train/entropy", runs_dir=house / "runs").save(house / "same.svg")
    assert same.read_text() == (house / "out" / "c.svg").read_text()


def test_report(house: Path) -> None:
    run = next((house / "runs" / row.id) for row in list_runs(house / "runs"))
    before = (run / "report.md").read_text()
    # Python made it from another folder, where commands name the run by its own.
    before = before.replace(f" --runs-dir {run.parent}", "").replace(str(run), run.name)
    (run / "report.md").unlink()
    assert gymnast("report", run.name, cwd=house).returncode == 0
    assert (run / "report.md").read_text() == before


def pictures_of(film: Path) -> list[np.ndarray]:
    """All of them, RGB."""
    with av.open(str(film)) as container:
        return [picture.to_ndarray(format="rgb24") for picture in container.decode(video=0)]


def test_progression(house: Path) -> None:
    """One episode before training and one per checkpoint, all from one seed; every picture is there."""
    run = next((house / "runs" / row.id) for row in list_runs(house / "runs"))
    made = gymnast("video", run.name, "--progression", "-o", "p.mp4", cwd=house)
    assert made.returncode == 0, made.stderr
    about = json.loads((house / "p.json").read_text())
    steps = sorted(int(path.name.removeprefix("step=")) for path in (run / "checkpoints").glob("step=*"))
    assert about["checkpoints"] == [None, *(f"step={step}" for step in steps)]
    assert {episode["seed"] for episode in about["episodes"]} == {0}
    pictures = pictures_of(house / "p.mp4")
    assert len(pictures) == sum(episode["length"] + 1 for episode in about["episodes"])
    same = library.load(run.name, runs_dir=house / "runs").record(house / "same.mp4", progression=True)
    # Python makes the same film. Not to the byte: how many threads the encoder takes depends on the process.
    again = pictures_of(same.path)
    assert len(again) == len(pictures)
    assert all(np.abs(a.astype(int) - b).mean() < 1 for a, b in zip(again, pictures, strict=True))
    assert json.loads((house / "same.json").read_text()) == about
