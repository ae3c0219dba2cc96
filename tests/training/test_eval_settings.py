"""`eval.env` as a list: one score per setting, the first decides; and evaluations of so many steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gymnast.config.load import resolve
from gymnast.config.schema import EvalConfig
from gymnast.errors import GymnastError
from gymnast.runs.trust import code_in
from gymnast.training.train import train

SHORT = "eval.env=[{}, {name: short, time_limit: 9}, {time_limit: 7}]"


def run(folder: Path, *words: str) -> Any:
    base = ("n_envs=8", "batch_size=0.25", "eval.every=400", "eval.start_fraction=null", "train.env_steps=800")
    result = train(resolve("CartPole-v1:ppo", [*base, *words]), folder)
    assert result is not None
    return result


def rows(result: Any) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in result.run.metrics_path.read_text().splitlines()]
    return [line for line in lines if line.get("eval/return_mean") is not None]


@pytest.mark.parametrize("mode", ["inprocess", "worker"])
def test_each_setting_has_its_score(mode: str, tmp_path: Path) -> None:
    """An episode of CartPole cannot be longer than its time limit, and lasts at least eight steps."""
    result = run(tmp_path, SHORT, "eval.episodes=6", f"eval.mode={mode}")
    found = rows(result)
    assert len(found) == 2
    for row in found:
        assert 8 <= row["eval.short/return_mean"] <= 9 and row["eval.setting_3/return_mean"] == 7
        assert row["eval/return_mean"] > 9
    assert result.evaluation.others["short"].differences == {"time_limit": 9}
    assert len(result.evaluation.others["short"].returns) == 6


def test_further_settings_change_nothing_of_the_first(tmp_path: Path) -> None:
    alone, beside = (run(tmp_path, "eval.episodes=6", *words) for words in ((), (SHORT,)))
    for one, two in zip(rows(alone), rows(beside), strict=True):
        assert one["eval/return_mean"] == two["eval/return_mean"]
        assert one["train/loss"] == two["train/loss"]


def test_a_stop_rule_may_look_at_a_setting(tmp_path: Path) -> None:
    rule = "train.stop=[{metric: eval.short/return_mean, at_least: 5}]"
    result = run(tmp_path, SHORT, "eval.episodes=6", rule)
    assert "eval.short/return_mean" in result.stop_reason and result.env_steps < 800


def test_steps_instead_of_episodes(tmp_path: Path) -> None:
    result = run(tmp_path, "eval.steps=600", "eval.n_envs=2")
    for row in rows(result):
        assert row["eval/episodes"] * row["eval/length_mean"] >= 600


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("eval.env=[]", "a list without settings"),
        ("eval.env=[{}, {name: a}, {name: a}]", "two settings of env have the same name"),
        ("eval.env=[{}, {name: a/b}]", "letters, digits"),
        ("eval.env=[{}, {name: a, tiem_limit: 3}]", "'eval.env.tiem_limit' is not a key"),
        ("eval.env=[{}, {name: other, id: Acrobot-v1}]", "under 'other' the env has the spaces"),
        ("train.stop=[{metric: eval.long/return_mean, at_least: 5}]", "Unknown metric"),
    ],
)
def test_what_is_refused(word: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(GymnastError) as caught:
        run(tmp_path, "eval.episodes=2", word)
    assert sentence in str(caught.value)


def test_the_later_layer_says_the_size() -> None:
    """Presets have episodes; steps on the command line take their place, and the two together are refused."""
    config = resolve("CartPole-v1:ppo", ["eval.steps=600"]).config
    assert (config.eval.steps, config.eval.episodes) == (600, None)
    with pytest.raises(GymnastError, match="Two sizes of an evaluation are given, eval.steps=600 and eval_episodes=3"):
        resolve("CartPole-v1:ppo", ["eval.steps=600", "eval_episodes=3"])
    with pytest.raises(ValidationError, match="steps or episodes, not both"):
        EvalConfig(steps=600, episodes=3)


def test_code_in_any_setting_is_asked_about() -> None:
    """A run from elsewhere must not bring code in by the second entry of the list."""
    config = resolve("CartPole-v1:ppo", ["eval.env=[{}, {name: a, module: theirs}]"]).config
    assert [str(code.value) for code in code_in(config.model_dump(mode="json"))] == ["theirs"]
