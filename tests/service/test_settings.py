"""The settings of a run with their origins, and of configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import finished_run

from gymnast.config.load import resolve
from gymnast.config.schedule_words import schedule_words
from gymnast.errors import UsageError
from gymnast.runs import lineage
from gymnast.runs.lineage import Attempt
from gymnast.runs.store import Run
from gymnast.service.configs import check_configs, config_card, is_config_reference, list_configs, similar_configs
from gymnast.service.settings import run_card, show_config


def run_of(root: Path, *overrides: str) -> Run:
    """A run with a real resolved config."""
    run = finished_run(root)
    run.config_path.write_text(json.dumps(resolve("CartPole-v1:ppo", overrides).config.model_dump(mode="json")))
    return run


def test_what_equals_the_preset_has_its_origin(tmp_path: Path) -> None:
    run = run_of(tmp_path, "algo.gamma=0.9", "env.vectorization=native", "train.seed=3", "algo.ent_coef=0.01")
    lineage.add_attempt(run.folder, Attempt(2, "step=64", {"algo.ent_coef": [0.0, 0.01]}))
    card = run_card(run)
    preset = config_card("CartPole-v1:ppo")
    there, here = ({one.key: one for one in side.settings} for side in (preset, card))
    assert here["algo.gamma"].origin == f"run {run.id} (preset: {there['algo.gamma'].text})"
    assert here["env.vectorization"].origin == f"run {run.id} (auto, settled when it began)"
    assert here["train.seed"].origin == f"run {run.id} (preset: 0)"
    assert here["algo.ent_coef"].origin == "resume, attempt 2"
    changed = {"algo.gamma", "env.vectorization", "train.seed", "algo.ent_coef"}
    assert {key: one for key, one in here.items() if key not in changed} == {
        key: one for key, one in there.items() if key not in changed
    }
    assert here["algo.clip_range"].origin.startswith("presets/envs/CartPole-v1.yaml:")
    assert not here["train.seed"].default and here["train.threads"].default


def test_what_is_laid_over_a_run_is_the_command_lines(tmp_path: Path) -> None:
    card = show_config("@last", ["algo.gamma=0.5"], run_of(tmp_path).root)
    found = next(one for one in card.settings if one.key == "algo.gamma")
    assert (found.value, found.origin) == (0.5, "command line (algo.gamma=0.5)")


def test_a_run_of_another_version_is_shown_as_it_was_saved(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    run.config_path.write_text(json.dumps({"name": "CartPole-v1:ppo", "algo": {"id": "ppo", "retired": 3}}))
    card = run_card(run)
    assert [(one.key, one.value, one.origin) for one in card.settings] == [
        ("algo.id", "ppo", f"run {run.id}"),
        ("algo.retired", 3, f"run {run.id}"),
    ]
    with pytest.raises(UsageError):
        run_card(run, ["algo.gamma=0.5"])


def test_a_name_that_names_no_preset_imports_nothing(tmp_path: Path) -> None:
    """The name is anybody's text."""
    run = run_of(tmp_path)
    for name in ("", "../../etc:ppo", "CartPole-v1:stranger", "Nothing-v0:ppo"):
        run.config_path.write_text(json.dumps({**run.config(), "name": name}))
        gamma = next(one for one in run_card(run).settings if one.key == "algo.gamma")
        assert gamma.origin == f"run {run.id}"


def test_configs_and_runs_are_told_apart() -> None:
    assert all(map(is_config_reference, ("CartPole-v1", "CartPole-v1:ppo", "my.yaml", "Taxi-v3")))
    assert not any(map(is_config_reference, ("@last", "@best:CartPole-v1", "k3v9x")))


def test_configs_are_found_by_words_and_by_letters() -> None:
    assert [one.config for one in list_configs(["cartpole", "reinforce"])] == ["CartPole-v1:reinforce"]
    assert "CartPole-v1:ppo" in [one.config for one in list_configs(["cpppo"])]
    assert list_configs(["xyzzy"]) == []
    assert "CartPole-v1:ppo" in similar_configs("CartPole-v1:pppo")


def test_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good, bad = check_configs(["CartPole-v1:ppo", "CartPole-v1:nothing"])
    assert good.problem is None and "nothing" in str(bad.problem)
    assert len(check_configs(["CartPole-v1"])) > 3


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"schedule": "constant", "value": 0.1}, "constant 0.1"),
        (
            {"schedule": "linear", "start": 0.008, "end": 0.0, "decay_start": 0.0, "axis": "progress"},
            "linear 0.008 → 0",
        ),
        (
            {"schedule": "cosine", "start": 3e-4, "end": 1e-5, "decay_start": 0.1, "floor": 1e-4},
            "cosine 0.0003 → 1e-05 from 10 % to the end, at least 0.0001",
        ),
        (
            {"schedule": "linear", "start": 1.0, "decay_end": 300000, "axis": "env_steps"},
            "linear 1 → 0 from 0 env steps to 300,000 env steps",
        ),
        (
            {"schedule": "piecewise", "points": [[0, 1e-3], [0.5, 0.12345678]], "interpolate": "step"},
            "piecewise 0.001 at 0 %, 0.12345678 at 50 %",
        ),
        (
            {"schedule": "piecewise", "points": [[0, 1], [64, 2]], "interpolate": "linear", "axis": "vec_steps"},
            "piecewise 1 at 0 vec steps → 2 at 64 vec steps",
        ),
        ({"schedule": "linear", "start": "high", "floor": None}, "linear: start high"),
        ({"schedule": ["linear"]}, "['linear']: "),
    ],
)
def test_schedules_in_words(schedule: dict[str, Any], words: str) -> None:
    assert schedule_words(schedule) == words
