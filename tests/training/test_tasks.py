"""Several tasks at the same time in one run: what is measured, what decides, and how it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gymnast.config.load import resolve
from gymnast.errors import GymnastError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.training.train import train

SMALL = ("n_envs=8", "n_steps=32", "batch_size=0.25", "train.env_steps=2048", "eval.every=1024", "eval.episodes=6")
TASKS = "plan={by: %s, tasks: {short: {env: {time_limit: 9}}, long: {weight: 3, env: {time_limit: 60}}}}"


def run(folder: Path, *words: str, by: str = "slot") -> Any:
    settings = (*SMALL, "eval.start_fraction=null", TASKS % by, *words)
    result = train(resolve("CartPole-v1:ppo", settings), folder)
    assert result is not None
    return result


def rows(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.run.metrics_path.read_text().splitlines()]


@pytest.mark.parametrize("by", ["slot", "episode"])
def test_every_task_has_its_metrics(by: str, tmp_path: Path) -> None:
    """In training and in evaluation; the episodes of all tasks are the run's."""
    result = run(tmp_path, by=by)
    last = rows(result)[-1]
    assert last["rollout/return_mean/short"] <= 9 < last["rollout/return_mean/long"]
    assert last["rollout/episodes/short"] + last["rollout/episodes/long"] == last["rollout/episodes"]
    assert last["eval.short/return_mean"] <= 9 < last["eval.long/return_mean"]
    assert last["eval/return_mean"] == pytest.approx(
        (last["eval.short/return_mean"] + last["eval.long/return_mean"]) / 2
    )
    assert last["eval/episodes"] == 12 and last["eval.long/episodes"] == 6
    played = result.evaluation
    assert played.steps == sum(sum(one.lengths) for one in played.others.values()) == sum(played.lengths)
    catalogue = load_catalogue()
    assert all(name in catalogue for name in last if name.startswith("rollout/") and name.endswith(("/short", "/long")))


def test_an_evaluation_next_to_training_has_the_same_scores(tmp_path: Path) -> None:
    here, beside = (rows(run(tmp_path, f"eval.mode={mode}")) for mode in ("inprocess", "worker"))
    scores = [
        [row["eval.long/return_mean"] for row in found if row.get("eval.long/return_mean") is not None]
        for found in (here, beside)
    ]
    assert len(scores[0]) == 2 and scores[0] == scores[1]


def test_solved_when_every_task_is(tmp_path: Path) -> None:
    """Each by its own threshold; the first that is not is the verdict."""
    thresholds = ("plan.tasks.short.solved_at=5", "plan.tasks.long.solved_at=%s")
    easy = run(tmp_path, thresholds[0], thresholds[1] % 5)
    assert easy.solved and easy.stop_reason == "solved" and easy.env_steps == 1024
    assert easy.verdict.sentence().startswith("all tasks solved, long: ")
    hard = run(tmp_path, thresholds[0], thresholds[1] % 500)
    assert not hard.solved and hard.verdict.sentence().startswith("not solved: long: ")


def test_eval_overrides_are_for_every_task(tmp_path: Path) -> None:
    result = run(tmp_path, "eval.env.time_limit=8")
    for one in result.evaluation.others.values():
        assert one.lengths == [8] * 6 and one.differences == {"time_limit": 8}


def test_a_stop_rule_may_look_at_a_task(tmp_path: Path) -> None:
    result = run(tmp_path, "train.stop=[{metric: eval.short/return_mean, at_least: 5}]")
    assert "eval.short/return_mean" in result.stop_reason and result.env_steps == 1024


def test_spaces_that_do_not_fit_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(GymnastError, match="'long' observes"):
        run(tmp_path / "runs", "plan.tasks.long.env.id=MountainCar-v0")
    assert not (tmp_path / "runs").exists()
