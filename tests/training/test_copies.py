"""A run whose envs all play the same says so at its start, and is otherwise the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_alike import PER_ITERATION, Watcher, differences, end_of, run, small

from gymnast.training.env_checks import copies

PONG = {"id": "ALE/Pong-v5", "atari": {"obs": "ram", "sticky": 0.0, "noops": 0}, "time_limit": 30}
WARNED: dict[str, dict[str, Any]] = {
    "FrozenLake, not slippery": {"id": "FrozenLake-v1", "kwargs": {"is_slippery": False}},
    "CliffWalking": {"id": "CliffWalking-v1", "time_limit": 20},
    "workers": {"id": "CliffWalking-v1", "time_limit": 20, "vectorization": "workers", "n_workers": 2},
    "Pong in lanes": PONG,
}
QUIET: dict[str, dict[str, Any]] = {
    "FrozenLake": {"id": "FrozenLake-v1"},
    "CartPole": {"id": "CartPole-v1"},
    "Bandit": {"id": "gymnast/Bandit-v0", "time_limit": 20},
    "Pong": {"id": "ALE/Pong-v5", "atari": {"obs": "ram"}, "time_limit": 30},
    "one CliffWalking": {"id": "CliffWalking-v1", "time_limit": 20, "n_envs": 1},
}


def warnings_of(env: dict[str, Any], root: Path, algorithm: str = "ppo") -> list[str]:
    """What one iteration warns of."""
    if env["id"].startswith("ALE"):
        pytest.importorskip("ale_py")
    watcher = Watcher()
    run(small(algorithm, env, env_steps=PER_ITERATION, eval={"episodes": 1}), root, watcher)
    return watcher.warnings


@pytest.mark.parametrize("name", WARNED)
def test_copies_that_add_nothing_are_spoken_of(name: str, tmp_path: Path) -> None:
    (warning,) = warnings_of(WARNED[name], tmp_path)
    env_id = WARNED[name]["id"]
    assert f"{env_id} plays the same under every seed" in warning
    assert "4 copies" in warning
    settings = {"A": "env.atari.sticky=0.25", "F": "env.kwargs.is_slippery=true", "C": "env.kwargs.is_slippery=true"}
    assert settings[env_id[0]] in warning


@pytest.mark.parametrize("name", QUIET)
def test_copies_that_differ_are_not(name: str, tmp_path: Path) -> None:
    assert warnings_of(QUIET[name], tmp_path, "a2c") == []


@pytest.mark.parametrize("algorithm", ["ppo", "reinforce"])
def test_looking_changes_no_bit(algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run with and without the look."""
    env = {"id": "CliffWalking-v1", "time_limit": 16}
    watchers = [Watcher(), Watcher()]
    first = run(small(algorithm, env, env_steps=3 * PER_ITERATION), tmp_path, watchers[0])
    monkeypatch.setattr(copies, "starts_alike", lambda obs: False)
    second = run(small(algorithm, env, env_steps=3 * PER_ITERATION), tmp_path, watchers[1])
    assert not differences(end_of(first.run), end_of(second.run))
    assert not differences(watchers[0].actions, watchers[1].actions)
    assert len(watchers[0].warnings) == 1 and not watchers[1].warnings


def test_no_env_is_made_where_the_slots_begin_differently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most runs pay nothing for it."""
    monkeypatch.setattr(copies, "plays_alike", None)  # calling it would raise
    assert warnings_of({"id": "CartPole-v1"}, tmp_path) == []
