"""What is said of runs: lists, rankings, details, progress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import add_checkpoints, finished_run, make_run

from gymnast.errors import UsageError
from gymnast.runs.labels import write_note
from gymnast.service.plain import plain
from gymnast.service.progress import progress_of
from gymnast.service.runs import RunFilter, best_runs, details, find_run, find_runs, list_runs


def test_lists_take_filters_as_people_type_them(tmp_path: Path) -> None:
    low, high = finished_run(tmp_path, 5.0), finished_run(tmp_path, 9.0, env="Acrobot-v1")
    write_note(low, "on purpose")
    assert [row.id for row in list_runs(tmp_path, sort="return")] == [high.id, low.id]
    (row,) = list_runs(tmp_path, RunFilter(env="cart*", since="1h"))
    assert (row.id, row.note) == (low.id, "on purpose")
    assert list_runs(tmp_path, RunFilter(until="2020-01-01")) == []
    with pytest.raises(UsageError, match="no time"):
        list_runs(tmp_path, RunFilter(since="yesterday"))
    json.dumps(plain(list_runs(tmp_path)), allow_nan=False)


def test_references(tmp_path: Path) -> None:
    first, second = finished_run(tmp_path), finished_run(tmp_path)
    assert find_run("@last", tmp_path) == second
    assert find_runs([first.id, "@last", first.id], tmp_path) == [first, second]
    with pytest.raises(UsageError, match="There is no run"):
        find_run(str(first.folder), tmp_path, paths=False)


def test_ranking(tmp_path: Path) -> None:
    low, high = finished_run(tmp_path, 5.0), finished_run(tmp_path, 9.0, size=3)
    other = finished_run(tmp_path, -80.0, env="Acrobot-v1")
    assert {row.id for row in best_runs(tmp_path)} == {high.id, other.id}
    ranking = best_runs(tmp_path, "cartpole-v1")
    assert [(row.id, row.measured_differently) for row in ranking] == [(high.id, ()), (low.id, ("env.kwargs",))]
    assert [row.id for row in best_runs(tmp_path, "CartPole-v1", limit=1)] == [high.id]
    with pytest.raises(UsageError, match="Did you mean 'CartPole-v1'"):
        best_runs(tmp_path, "CartPole-v9")


def test_details(tmp_path: Path) -> None:
    """Pointers, videos, the last known values; a link among the videos is not followed."""
    run = finished_run(tmp_path, 7.0)
    add_checkpoints(run, 32, 64)
    (run.videos / "episode.mp4").write_bytes(b"1234")
    (run.videos / "notes.txt").write_text("no video")
    (run.videos / "elsewhere.mp4").symlink_to(run.config_path)
    run.metrics_path.write_text('{"env_steps":32,"eval/return_mean":9.5}\n{"env_steps":64,"eval/return_mean":null}\n')
    found = details(run)
    assert [(one.name, one.best, one.last) for one in found.checkpoints] == [
        ("step=32", True, False),
        ("step=64", False, True),
    ]
    assert [(video.name, video.size) for video in found.videos] == [("episode.mp4", 4)]
    assert found.last_row["eval/return_mean"] is None and found.latest["eval/return_mean"] == 9.5
    assert plain(found)["progress"]["state"] == "finished"


def test_progress_of_a_run_that_goes_on(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    config = run.config()
    config["train"]["vec_steps"] = 100
    config["env"]["n_envs"] = 8
    run.config_path.write_text(json.dumps(config))
    run.update(env_steps=200, vec_steps=25, wall_seconds=3.0)
    found = progress_of(run)
    assert (found.state, found.alive, found.share) == ("running", True, 0.25)
    assert (found.budget_vec_steps, found.budget_env_steps) == (100, 800)
    assert found.eta_seconds == 9.0
    run.finish("interrupted", "Ctrl-C")
    assert progress_of(run).eta_seconds is None


@pytest.mark.parametrize("train", [{}, {"env_steps": "many"}, {"env_steps": 0}, {"env_steps": True}, 5])
def test_a_damaged_budget_is_none(tmp_path: Path, train: object) -> None:
    run = finished_run(tmp_path)
    run.config_path.write_text(json.dumps({**run.config(), "train": train}))
    assert progress_of(run).share is None
