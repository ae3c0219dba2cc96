"""What runs show of themselves at their end: real runs, and their files read back."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import polars
import pytest
import small_envs  # noqa: F401 - registers the envs

from gymnast import api
from gymnast.errors import GymnastError
from gymnast.evaluation.film import Caption
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs.store import Run
from gymnast.training.showing.pace import Paced, allowance

TINY = ("env.n_envs=2", "algo.n_steps=32", "algo.batch_size=32", "algo.n_epochs=1", "eval.episodes=4", "eval.every=64")


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a moment may show themselves as long ones do."""
    monkeypatch.setattr("gymnast.training.showing.ending.allowance", lambda ran: 20.0)


def train(root: Path, reference: str = "CartPole-v1:ppo", *overrides: str, **settings: Any) -> Run:
    return api.train(reference, *TINY, *overrides, env_steps=192, runs_dir=root, **settings).run


def frames_of(path: Path) -> list[Any]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def test_the_time_for_it() -> None:
    """A second, or a twentieth of long runs; of the shortest less than they took."""
    assert allowance(3600) == 180 and allowance(10) == 1.0 and allowance(0.4) == pytest.approx(0.3)


@pytest.mark.usefixtures("_patient")
def test_a_run_films_tabulates_and_reports_itself(tmp_path: Path) -> None:
    run = train(tmp_path)
    about = json.loads((run.videos / "best.json").read_text())
    (episode,) = about["episodes"]
    best = (run.checkpoints / "best").read_text().strip()
    assert (about["run"], about["checkpoint"], about["every"]) == (run.id, best, 1)
    assert about["env_steps"] == int(best.removeprefix("step="))
    # The same episode in plain Gymnasium, by the same weights.
    agent = api.load(f"{run.id}/{best}", runs_dir=tmp_path)
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=episode["seed"])
    total, steps, over = 0.0, 0, False
    while not over:
        obs, reward, terminated, truncated, _ = env.step(agent.predict(obs))
        total, steps, over = total + float(reward), steps + 1, terminated or truncated
    assert (episode["return"], episode["length"]) == (total, steps)
    frames = frames_of(run.videos / "best.mp4")
    assert len(frames) == steps + 1
    seconds = [float(frame.pts * frame.time_base) for frame in frames]
    np.testing.assert_allclose(np.diff(seconds), 1 / 50, atol=1e-3)
    assert all(frame.to_ndarray(format="rgb24").std() > 5 for frame in frames)
    table = polars.read_parquet(run.folder / "rollouts" / "best.parquet")
    assert table.height == steps and table["env_reward"].sum() == total
    assert polars.read_csv(run.folder / "rollouts" / "best.csv").height == steps
    # The split of time is that of the whole run, the film included.
    last = list(MetricRows(run.metrics_path))[-1]
    shares = [last[f"time/{name}"] for name in ("env", "policy", "learn", "eval", "checkpoint", "video", "other")]
    assert sum(shares) == pytest.approx(1, abs=1e-6) and last["time/video"] > 0
    page = (run.folder / "report.html").read_text()
    assert "data:video/mp4;base64," in page and run.id in page
    status = run.status()
    assert status.efficiency is not None and status.vec_steps_to_solved is None
    assert f"efficiency: {status.efficiency:.3f}" in (run.folder / "report.md").read_text()


@pytest.mark.usefixtures("_patient")
def test_off_by_config(tmp_path: Path) -> None:
    run = train(tmp_path, "CartPole-v1:ppo", "log.video=false", "log.rollouts=false", "log.report=false")
    assert not list(run.videos.iterdir()) and not (run.folder / "rollouts").exists()
    assert not list(run.folder.glob("report.*"))
    run = train(tmp_path, "CartPole-v1:ppo", "log.video=false")
    assert not list(run.videos.iterdir()) and (run.folder / "rollouts" / "best.csv").exists()


@pytest.mark.usefixtures("_patient")
def test_an_env_that_cannot_be_drawn_is_noted(tmp_path: Path) -> None:
    """The run is finished, its episode is in the table, and the log says why there is no video."""
    run = train(tmp_path, "Identity-v0:ppo")
    assert run.status().state == "finished" and not list(run.videos.glob("*.mp4"))
    assert "note: No video of this run" in run.log_path.read_text()
    assert (run.folder / "rollouts" / "best.csv").exists() and (run.folder / "report.html").exists()


def test_a_failed_run_has_a_report(tmp_path: Path) -> None:
    with pytest.raises(GymnastError, match="exploded"):
        train(tmp_path, "Faulty-v0:ppo", "env.kwargs.at=70", "env.vectorization=inprocess")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink())
    text = (folder / "report.md").read_text()
    assert re.search(r"^failed: .*simulator", text, re.M) and f"gymnast resume {folder}" in text


def test_a_film_in_little_time_leaves_pictures_out_evenly() -> None:
    """Every picture costs 10 ms, and there is time for some 20 of 400; the last is shown whatever it costs."""

    class Slow:
        black = False

        def __init__(self) -> None:
            self.frames: list[int] = []

        def begin(self, fps: float) -> None:
            pass

        def wants(self, frame: int) -> bool:
            return True

        def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
            time.sleep(0.01)
            self.frames.append(frame)

    film = Slow()
    paced = Paced(film, 0.25, 400)
    picture, caption = np.zeros((2, 2, 3), np.uint8), Caption(0)
    paced.begin(50)
    for frame in range(400):
        if paced.wants(frame):
            paced.add(picture, frame, caption)
    paced.add(picture, 400, caption)
    assert 5 < len(film.frames) <= 26
    assert film.frames[-1] == 400 and len(set(np.diff(film.frames[4:-1]))) == 1
