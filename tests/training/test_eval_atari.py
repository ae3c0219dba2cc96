"""Scores of Atari games come with the protocol they were made under, in training's evaluations and in `eval.env`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs_alike import run, small

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.training.evaluating.setup import eval_env_config

pytest.importorskip("ale_py", reason="ale-py is not installed")


def section(**atari: Any) -> dict[str, Any]:
    """Short games."""
    return {"id": "ALE/Pong-v5", "atari": {"obs": "ram", "frame_cap": 80, **atari}, "vectorization": "inprocess"}


def test_the_protocol_is_stored_with_the_score(tmp_path: Path) -> None:
    """With what the evaluation changes of it, and frames are counted with the game's own skip."""
    changes = {"every": 64, "episodes": 2, "env": {"atari": {"sticky": 0.0}}}
    result = run(small("ppo", section(skip=2), env_steps=64, eval=changes), tmp_path)
    assert result.evaluation is not None
    stored = result.evaluation.as_json()
    assert (stored["protocol"]["sticky"], stored["protocol"]["skip"], stored["protocol"]["obs"]) == (0.0, 2, "ram")
    assert stored["differences"]["atari"]["sticky"] == 0.0
    assert result.evaluation.lengths == [40, 40]
    assert [row["frames"] for row in MetricRows(result.run.folder / "metrics.jsonl")] == [128]


def test_the_command_leaves_in_silence(tmp_path: Path) -> None:
    """ALE's extension complains at exit of games that are still there."""
    run(small("ppo", section(), env_steps=64), tmp_path)
    command = [sys.executable, "-m", "gymnast", "eval", "@last", "-e", "2", "--runs-dir", str(tmp_path)]
    played = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "over 2 episodes" in played.stdout
    assert played.stderr == ""


def test_eval_env_changes_only_what_it_names() -> None:
    """The rest of the protocol stays training's; what ALE's vector env cannot play is played by single games."""
    training = {"id": "ALE/Pong-v5", "atari": {"noops": 7, "life_loss": "terminal"}, "vectorization": "native"}
    config = small("ppo", training, eval={"env": {"atari": {"sticky": 0.0}}}).config
    evaluation, _ = eval_env_config(config)
    assert evaluation.atari is not None
    assert (evaluation.atari.noops, evaluation.atari.life_loss, evaluation.atari.sticky) == (7, "terminal", 0.0)
    assert evaluation.vectorization == "native"
    config = small("ppo", training, eval={"env": {"atari": {"difficulty": 1}}}).config
    assert eval_env_config(config)[0].vectorization == "inprocess"
