"""`gymnast plan show | compare`, and what other commands say of a run's stages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gymnast.cli.app import app
from gymnast.config.load import resolve
from gymnast.errors import GymnastError
from gymnast.training.train import train

STAGES = (
    "n_envs=4",
    "n_steps=16",
    "batch_size=0.5",
    "train.env_steps=384",
    "eval.every=64",
    "eval.episodes=4",
    "eval.start_fraction=null",
    "plan={by: stage, tasks: {short: {env: {time_limit: 9}, solved_at: 5}, half: {env: {time_limit: 20}, env_steps: 128},"
    " whole: {solved_at: 1000}}}",
)
SLOTS = "plan={by: slot, tasks: {short: {env: {time_limit: 9}}, long: {weight: 3}}}"


def run(*arguments: object, code: int = 0) -> str:
    """A command in this process: what it printed, or its error."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if isinstance(result.exception, GymnastError):
        assert result.exception.exit_code == code, result.exception
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: all stages, and the last one alone."""
    folder = tmp_path_factory.mktemp("stages")
    for words in ((), ("plan.start=whole",)):
        assert train(resolve("CartPole-v1:ppo", (*STAGES, *words)), folder) is not None
    return folder


def ids(folder: Path) -> list[str]:
    found = list(folder.glob("[!@]*/plan.json"))
    return [path.parent.name for path in sorted(found, key=lambda path: path.stat().st_mtime)]


def test_slots_are_drawn_with_their_shares() -> None:
    shown = run("plan", "show", "CartPole-v1:ppo", SLOTS, "env.n_envs=8", "batch_size=0.5")
    assert "2 tasks, side by side, by env slot" in shown
    assert "████░░░░░░░░░░░░" in shown and "2 of 8 slots" in shown and "6 of 8 slots" in shown
    assert "time_limit 9" in shown and "as the env section" in shown
    assert "All tasks observe Box(" in shown


def test_episodes_are_drawn_with_their_shares() -> None:
    assert "75% of the episodes" in run("plan", "show", "CartPole-v1:ppo", SLOTS, "plan.by=episode")


def test_stages_are_drawn_in_their_order() -> None:
    shown = run("plan", "show", "CartPole-v1:ppo", *STAGES, "plan.start=half")
    assert [line.split()[:2] for line in shown.splitlines() if line[:1] in "·○●◐" and line.strip()] == [
        ["·", "short"],
        ["○", "half"],
        ["○", "whole"],
    ]
    assert "left out (plan.start)" in shown and "or 128 steps" in shown and "until 1000" in shown


def test_a_run_shows_how_far_it_has_come(trained: Path) -> None:
    shown = run("plan", "show", trained / ids(trained)[0])
    assert "●  short  solved after 64 env steps" in shown
    assert "●  half   not solved in 128 env steps" in shown or "●  half   solved after" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["at", "the", "end", "of", "short", "half", "whole"] in lines
    as_data = json.loads(run("plan", "show", trained / ids(trained)[0], "--json"))
    assert [one["record"]["name"] for one in as_data["tasks"]] == ["short", "half", "whole"]


def test_steps_with_and_without_earlier_stages(trained: Path) -> None:
    staged, direct = ids(trained)
    shown = run("plan", "compare", trained / staged, trained / direct)
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert rows[staged][2:4] == ["short", "64"]
    assert rows[direct][2] == "whole"
    assert "begins with short: median of all env steps not reached, 0 of 1 runs solved whole" in shown
    assert "begins with whole: median of all env steps not reached, 0 of 1 runs solved whole" in shown
    found = json.loads(run("plan", "compare", trained / staged, trained / direct, "--json"))
    assert [one["start"] for one in found["runs"]] == ["short", "whole"]


def test_runs_show_names_stages_and_their_checkpoints(trained: Path) -> None:
    shown = run("runs", "show", trained / ids(trained)[0])
    assert "step=64 (stage=short)" in " ".join(shown.split())
    assert "at the end of" in shown and "change since then" in shown
    report = (trained / ids(trained)[0] / "report.md").read_text()
    assert "| at the end of | short | half | whole |" in report
    assert "<h2>Stages</h2>" in (trained / ids(trained)[0] / "report.html").read_text()


def test_an_evaluation_of_a_run_with_stages_is_of_the_last(trained: Path) -> None:
    shown = run("eval", f"{trained / ids(trained)[0]}", "--episodes", "2")
    assert "short: " in shown and "half: " in shown
    named = json.loads(
        run("eval", f"{ids(trained)[0]}/stage=short", "--episodes", "2", "--json", "--runs-dir", trained)
    )
    assert named["checkpoint"] == "step=64" and list(named["settings"]) == ["short", "half"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "CartPole-v1:ppo"), "has no plan: it trains on CartPole-v1 alone"),
        (("show", "CartPole-v1:ppo", SLOTS, "env.n_envs=1", "batch_size=0.5"), "each task needs a slot"),
        (("show", "CartPole-v1:ppo", SLOTS, "plan.tasks.long.env.id=MountainCar-v0"), "'long' observes Box"),
        (("show", "CartPole-v1:ppo", SLOTS, "plan.tasks.long.env.id=MountainCra-v0"), "Did you mean 'MountainCar-v0'"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(app, ["plan", *words])
    assert isinstance(result.exception, GymnastError)
    assert sentence in str(result.exception)


def test_runs_without_stages_cannot_be_compared(trained: Path, tmp_path: Path) -> None:
    assert train(resolve("CartPole-v1:ppo", (*STAGES[:-1],)), tmp_path) is not None
    (plain,) = tmp_path.glob("[!@]*/config.json")
    assert "has no plan by stage" in run("plan", "compare", plain.parent, code=2)
