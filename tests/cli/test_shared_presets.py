"""Atari games without a file of their own on the command line: listed, shown, checked, refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gymnast.cli.app import app
from gymnast.errors import GymnastError

pytest.importorskip("ale_py")
SHARED = ["rgb_ppo", "rgb_deterministic_ppo", "ram_ppo", "ram_deterministic_ppo"]
BASE = "presets/bases/atari.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without ./configs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    """A command in this process: what it printed, or its error."""
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, GymnastError):
        assert result.exception.exit_code == code, result.exception
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


def test_config_list() -> None:
    everything = run("config", "list").split()
    assert [line for line in everything if line.startswith("ALE/*")] == [f"ALE/*-v5:{name}" for name in SHARED]
    assert not any("Seaquest-v5" in line for line in everything)
    found = run("config", "list", "ale/seaquest").split()
    assert found == [f"ALE/Seaquest-v5:{name}" for name in SHARED]
    rows = json.loads(run("config", "list", "pong", "objects", "--json"))
    assert [row["config"] for row in rows] == ["ALE/Pong-v5:objects_ppo", "ALE/Pong-v5:objects_deterministic_ppo"]
    assert rows[0]["files"] == [BASE, "presets/envs/ALE_Pong-v5.yaml"]


def test_config_show() -> None:
    shown = json.loads(run("config", "show", "ALE/SpaceInvaders-v5", "env.atari.sticky=0.1", "--json"))
    assert shown["config"]["name"] == "ALE/SpaceInvaders-v5:rgb_ppo"
    assert shown["origins"]["algo.clip_range"].startswith(f"{BASE}:")
    assert shown["config"]["env"]["atari"]["sticky"] == 0.1
    assert shown["origins"]["env.atari.sticky"] == "command line (env.atari.sticky=0.1)"
    assert "Known: rgb_ppo" in run("config", "show", "ALE/SpaceInvaders-v5:dqn", code=2)
    assert "Did you mean 'env.atari.sticky'" in run(
        "config", "show", "ALE/SpaceInvaders-v5", "env.atari.stiky=0", code=2
    )


def test_games_that_do_not_exist() -> None:
    for arguments in (("config", "show"), ("env", "show")):
        assert "'ALE/SpaceInvaders-v5'" in run(*arguments, "ALE/SpaceInvader-v5", code=2)
    assert "'ALE/SpaceInvaders-v5'" in run("config", "check", "ALE/SpaceInvader-v5:rgb_ppo", code=1)


def test_config_check_and_diff(folder: Path) -> None:
    assert "4 of 4 configs are valid" in run("config", "check", "ALE/Seaquest-v5")
    (folder / "configs").mkdir()
    own = folder / "configs" / "ALE_Seaquest-v5.yaml"
    own.write_text("id: ALE/Seaquest-v5\nvariants:\n  my_ppo:\n    extends: ram_ppo\n    algo: {gamma: 0.95}\n")
    assert "5 of 5 configs are valid" in run("config", "check", "ALE/Seaquest-v5")
    differences = json.loads(run("config", "diff", "ALE/Seaquest-v5:ram_ppo", "ALE/Seaquest-v5:my_ppo", "--json"))
    assert [one["key"] for one in differences["differences"]] == ["algo.gamma"]
    mine = next(row for row in json.loads(run("env", "list", "seaquest-v5", "--json")))
    assert mine["variants"] == [*SHARED, "my_ppo"] and mine["family"] == "atari"


def test_env_list() -> None:
    rows = {row["id"]: row for row in json.loads(run("env", "list", "--json"))}
    assert rows["ALE/*-v5"]["variants"] == SHARED and rows["ALE/*-v5"]["installed"]
    assert (rows["ALE/Pong-v5"]["family"], rows["ALE/Pong-v5"]["solved_at"]) == ("atari", 18)
    (frogger,) = json.loads(run("env", "list", "frogger", "--json"))
    assert (frogger["id"], frogger["family"], frogger["variants"]) == ("ALE/Frogger-v5", "atari", SHARED)
    every = [row["id"] for row in json.loads(run("env", "list", "--all", "ALE/", "--json"))]
    assert len(every) == len(set(every)) > 100 and "ALE/*-v5" not in every


def test_env_show() -> None:
    card = json.loads(run("env", "show", "ALE/SpaceInvaders-v5:ram_ppo", "--json"))
    assert card["observation_space"] == "Box(0, 255, (128,), uint8)" and card["horizon"] == 27_000
    objects = json.loads(run("env", "show", "ALE/Pong-v5:objects_ppo", "--json"))
    assert [part["name"] for part in objects["observation"]][:2] == ["ball x", "ball y"]
    assert objects["actions"] == ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"]
