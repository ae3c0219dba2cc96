"""A plan by stage: promotion, master checkpoints, what is forgotten, and resumes to the bit wherever the run stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_envs  # noqa: F401 - registers the envs
from runs_alike import PER_ITERATION, Watcher, assert_same_end, resume, run, small

from gymnast.config.load import Resolved
from gymnast.errors import GymnastError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint, stages
from gymnast.runs.refs import resolve_checkpoint
from gymnast.runs.store import Run

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
BY_STEPS = {
    "short": {"env": {"time_limit": 9}, "env_steps": 2 * PER_ITERATION},
    "longer": {"env": {"time_limit": 20}, "env_steps": 2 * PER_ITERATION},
    "whole": {},
}
SOLVED_AT_ONCE = {
    "short": {"env": {"time_limit": 9}, "solved_at": 5},
    "longer": {"env": {"time_limit": 20}, "solved_at": 5},
    "whole": {"solved_at": 1000},
}


def staged(tasks: dict[str, Any], env: dict[str, Any] = CARTPOLE, algorithm: str = "ppo", **plan: Any) -> Resolved:
    """Six iterations, an evaluation after every second."""
    changes = {"policy": {"hidden": [16], "normalize_obs": True}, "plan": {"by": "stage", "tasks": tasks, **plan}}
    return small(algorithm, env, **changes)


def rows(of: Run) -> list[dict[str, Any]]:
    return list(MetricRows(of.metrics_path))


def stages_in(of: Run) -> list[float]:
    return [row["train/stage"] for row in rows(of)]


# ---- the way through the stages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [BY_STEPS, SOLVED_AT_ONCE], ids=["steps spent", "solved"])
def test_every_stage_has_its_time(tasks: dict[str, Any], tmp_path: Path) -> None:
    """Rows, evaluations and episodes are of the stage that is trained on; steps go on counting."""
    result = run(staged(tasks), tmp_path)
    assert result.env_steps == 6 * PER_ITERATION
    assert stages_in(result.run) == [1, 1, 2, 2, 3, 3]
    found = rows(result.run)
    assert [row["env_steps"] for row in found] == [PER_ITERATION * number for number in range(1, 7)]
    for row in found[:2]:
        assert row["rollout/length_mean"] <= 9
    assert found[3]["rollout/length_mean"] <= 20
    assert found[1]["eval/length_mean"] <= 9
    records = stages.read(result.run.folder)
    assert [(one.name, one.began, one.ended) for one in records] == [
        ("short", 0, 2 * PER_ITERATION),
        ("longer", 2 * PER_ITERATION, 4 * PER_ITERATION),
        ("whole", 4 * PER_ITERATION, 6 * PER_ITERATION),
    ]
    reached = [None, None, None] if tasks is BY_STEPS else [2 * PER_ITERATION, 4 * PER_ITERATION, None]
    assert [one.reached for one in records] == reached
    assert not result.solved


def test_old_stages_are_evaluated_at_each_promotion_and_at_the_end(tmp_path: Path) -> None:
    result = run(staged(BY_STEPS), tmp_path)
    records = stages.read(result.run.folder)
    assert [list(one.scores) for one in records] == [
        ["short", "longer"],
        ["short", "longer", "whole"],
        ["short", "longer", "whole"],
    ]
    found = rows(result.run)
    for record, row in zip(records, found[1::2], strict=True):
        for name, score in record.scores.items():
            assert row[f"eval.{name}/return_mean"] == score.mean
        assert row["eval/return_mean"] == record.scores[record.name].mean
    assert all(score.mean <= 9 for score in (one.scores["short"] for one in records))


def test_each_stage_leaves_its_weights(tmp_path: Path) -> None:
    """They stay when older checkpoints go, and references name them."""
    config = staged(BY_STEPS)
    config = Resolved(
        config.config.model_copy(
            update={"train": config.config.train.model_copy(update={"keep_checkpoints": 1, "checkpoint_every": 1})}
        )
    )
    result = run(config, tmp_path)
    assert checkpoint.masters(result.run.folder) == {
        "short": f"step={2 * PER_ITERATION}",
        "longer": f"step={4 * PER_ITERATION}",
    }
    assert resolve_checkpoint(tmp_path, f"{result.run.id}/stage=short")[1] == f"step={2 * PER_ITERATION}"
    with pytest.raises(GymnastError, match="has ended no stage 'shrot'. Did you mean 'short'"):
        resolve_checkpoint(tmp_path, f"{result.run.id}/stage=shrot")


def test_the_best_is_of_the_last_stage(tmp_path: Path) -> None:
    """A score of an easier stage does not stand in its way."""
    easy = {"easy": {"env": {"kwargs": {"sutton_barto_reward": False}}, "env_steps": 2 * PER_ITERATION}}
    # Of Sutton and Barto's reward no return is above 0, so every score of the first stage is better.
    hard = {"hard": {"env": {"kwargs": {"sutton_barto_reward": True}}}}
    result = run(staged({**easy, **hard}), tmp_path)
    best = checkpoint.read_pointer(result.run.folder, "best")
    assert best is not None and int(best.removeprefix("step=")) >= 2 * PER_ITERATION
    assert result.best is not None and result.best <= 0


def test_it_is_solved_in_its_last_stage(tmp_path: Path) -> None:
    tasks = {**SOLVED_AT_ONCE, "whole": {"solved_at": 5}}
    config = staged(tasks).config
    config = config.model_copy(update={"train": config.train.model_copy(update={"stop_when_solved": True})})
    result = run(Resolved(config), tmp_path)
    assert result.solved and result.stop_reason == "solved" and result.env_steps == 6 * PER_ITERATION
    assert stages.read(result.run.folder)[-1].reached == 6 * PER_ITERATION
    assert [row["train/solved"] for row in rows(result.run)] == [0, 0, 0, 0, 0, 1]


def test_the_start_leaves_stages_out(tmp_path: Path) -> None:
    """Direct training on the last stage has the same evaluation, also of the stages it never saw."""
    result = run(staged(BY_STEPS, start="whole"), tmp_path)
    assert stages_in(result.run) == [3] * 6
    (record,) = stages.read(result.run.folder)
    assert record.name == "whole" and list(record.scores) == ["short", "longer", "whole"]


def test_fresh_moments_only_where_they_are_asked_for(tmp_path: Path) -> None:
    kept, fresh = (run(staged(BY_STEPS, optimizer=optimizer), tmp_path) for optimizer in ("keep", "fresh"))
    at_promotion = f"checkpoints/step={2 * PER_ITERATION}"
    steps = [
        checkpoint.load(one.run.folder / at_promotion).state["session"]["optimizer"]["step"] for one in (kept, fresh)
    ]
    assert steps[0] > 0 and steps[1] == 0
    assert rows(kept.run)[1]["train/loss"] == rows(fresh.run)[1]["train/loss"]
    assert rows(kept.run)[2]["train/loss"] != rows(fresh.run)[2]["train/loss"]


# ---- resumes -------------------------------------------------------------------------------------------------------


CASES = {
    "steps spent": staged(BY_STEPS),
    "solved": staged(SOLVED_AT_ONCE),
    "by replay": staged(BY_STEPS, {"id": "Walk-v0"}),
    "a2c, fresh moments": staged(BY_STEPS, algorithm="a2c", optimizer="fresh"),
}


@pytest.mark.parametrize("stop_after", range(1, 6))
@pytest.mark.parametrize("case", CASES)
def test_stop_and_resume_equals_the_whole_run(case: str, stop_after: int, tmp_path: Path) -> None:
    """In the middle of a stage, right at a promotion, and right before one."""
    whole = run(CASES[case], tmp_path)
    stopped = run(CASES[case], tmp_path, Watcher(stop_after=stop_after))
    assert stopped.interrupted and stopped.env_steps == stop_after * PER_ITERATION
    ended = resume(CASES[case], stopped.run)
    assert_same_end(whole.run, ended.run)
    assert stages.read(whole.run.folder) == stages.read(ended.run.folder)
    assert checkpoint.masters(whole.run.folder) == checkpoint.masters(ended.run.folder)


def test_a_run_of_other_stages_is_not_gone_on_with(tmp_path: Path) -> None:
    stopped = run(staged(BY_STEPS), tmp_path, Watcher(stop_after=3))
    other = {"first": BY_STEPS["short"], **{name: BY_STEPS[name] for name in ("longer", "whole")}}
    with pytest.raises(GymnastError, match="saved in the stages short, longer, this plan has first, longer, whole"):
        resume(staged(other), stopped.run)
