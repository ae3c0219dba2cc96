"""What the table knows of a run before its first row."""

from __future__ import annotations

import json

import pytest
from launch import gymnast

from gymnast.config.load import resolve
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.goal import Goal, subject_of

CATALOGUE = load_catalogue()


def subject(name, *overrides):
    return subject_of(resolve(name, list(overrides)).config, CATALOGUE)


def test_the_goal_is_what_the_spec_knows():
    goal = subject("CartPole-v1:ppo").goal
    assert goal == Goal(random=22.4, target=475.0, perfect=500.0, horizon=500)
    assert goal.way == pytest.approx(452.6)
    assert not subject("CartPole-v1:ppo", "train.stop_when_solved=false").goal.ends_when_solved
    assert subject("CartPole-v1:ppo", "env.time_limit=200").goal.horizon == 200


@pytest.mark.parametrize(("random", "target"), [(None, 5.0), (5.0, None), (5.0, 5.0), (6.0, 5.0)])
def test_there_is_no_way_where_it_is_unknown_or_leads_down(random, target):
    assert Goal(random=random, target=target).way is None


def test_a_schedule_is_a_row_and_a_constant_is_not():
    found = subject("CartPole-v1:ppo")
    assert "train/learning_rate" in found.rows and "train/learning_rate" not in found.settings
    assert found.settings["train/gamma"] == 0.985 and "train/gamma" not in found.rows
    found = subject("CartPole-v1:ppo", "algo.learning_rate=0.001")
    assert found.settings["train/learning_rate"] == 0.001 and "train/learning_rate" not in found.rows


def test_rows_follow_the_algorithm():
    critic, clip = {"train/value_loss", "train/explained_variance"}, {"train/clip_fraction"}
    assert critic | clip <= set(subject("CartPole-v1:ppo").rows)
    assert critic <= set(subject("CartPole-v1:a2c").rows) and not clip & set(subject("CartPole-v1:a2c").rows)
    assert not critic & set(subject("CartPole-v1:reinforce", "algo.baseline=mean").rows)
    assert critic <= set(subject("CartPole-v1:reinforce", "algo.baseline=learned").rows)
    assert "train/action_std" in subject("Pendulum-v1:ppo").rows
    assert "train/action_std" not in subject("CartPole-v1:ppo").rows


@pytest.mark.parametrize("name", ["CartPole-v1:ppo", "CartPole-v1:a2c", "CartPole-v1:reinforce", "Pendulum-v1:ppo"])
def test_every_row_that_is_promised_comes(name, tmp_path):
    """And no other moves in: what a real run logs is what its table has rows for."""
    steps = ["train.env_steps=6000", "eval.every=1000", "eval.episodes=2", "env.n_envs=16"]
    done = gymnast("train", name, *steps, "--quiet", "--runs-dir", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = [found for found in tmp_path.glob("*/metrics.jsonl") if not found.parent.is_symlink()]
    logged = set()
    for line in path.read_text().splitlines():
        logged |= {key for key, value in json.loads(line).items() if value is not None}
    found = subject(name, *steps)
    assert set(found.rows) <= logged
    visible = {metric.name for metric in CATALOGUE if metric.row == "always" or metric.row.startswith("if ")}
    assert logged & visible <= set(found.rows)
