"""What is said about Atari settings that cannot be, and which protocol is told with a score (ENV-3)."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gymnast.config.schema import EnvConfig
from gymnast.envs.families.atari import roms
from gymnast.envs.families.family import Rules
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.registry import rules_of
from gymnast.errors import GymnastError

pytest.importorskip("ale_py", reason="ale-py is not installed")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"id": "CartPole-v1", "atari": {}}, "env.atari is for Atari games .* 'CartPole-v1'"),
        ({"atari": {"obs": "rgbb"}}, "'pixels', 'ram' or 'objects'"),
        ({"atari": {}, "kwargs": {"frameskip": 2}}, "use env.atari.skip instead"),
        ({"atari": {}, "kwargs": {"full_action_space": True}}, "use env.atari.actions=full instead"),
        ({"atari": {}, "kwargs": {"sound_obs": True}}, "env.kwargs.sound_obs does not go with env.atari"),
        ({"atari": {"actions": []}}, "at least one label"),
        ({"atari": {"actions": ["UP", "UP"]}}, "each once"),
        ({"atari": {"sticky": 1.5}}, "less than or equal to 1"),
        ({"atari": {"stiky": 0.5}}, "Extra inputs"),
    ],
)
def test_sections_that_cannot_be(section: dict[str, Any], said: str) -> None:
    """Before anything is made."""
    with pytest.raises(ValidationError, match=said):
        EnvConfig(**{"id": "ALE/Pong-v5", **section})


@pytest.mark.parametrize(
    ("game", "atari", "said"),
    [
        ("Pnog", {}, "Unknown environment 'ALE/Pnog-v5'. Did you mean 'ALE/Pong-v5'"),
        ("Qbert", {"obs": "objects"}, "no object features for the game 'qbert'.*breakout, pong"),
        ("Pong", {"actions": ["NOOP", "UPP"]}, "'UPP', which is no button of 'pong'. Did you mean 'UP'.*LEFTFIRE;"),
        ("Pong", {"mode": 77}, r"'pong' has no mode 77 \(env.atari.mode\): it has 0, 1"),
        ("Pong", {"difficulty": 9}, "no difficulty 9"),
    ],
)
@pytest.mark.parametrize("vectorization", ["inprocess", "auto"])
def test_games_that_cannot_be(vectorization: str, game: str, atari: dict[str, Any], said: str) -> None:
    """One sentence, without the arguments that Gymnasium would add to it."""
    with pytest.raises(GymnastError, match=said) as caught:
        make_envs(EnvConfig(id=f"ALE/{game}-v5", atari=atari, vectorization=vectorization, n_envs=1), 1)
    assert "environment creator" not in str(caught.value)


def test_missing_and_wrong_roms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """What is missing, where it was looked for, and what to do; a folder of one's own works."""
    source = roms.rom_path("pong")
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    section = EnvConfig(id="ALE/Pong-v5", atari={"obs": "ram"})
    with pytest.raises(
        GymnastError, match=r"The ROM of 'pong' is missing.*Put pong.bin into the folder that ALE_ROMS_DIR"
    ):
        make_one(section)
    (tmp_path / "pong.bin").write_bytes(b"not a game")
    with pytest.raises(GymnastError, match="The ROM of 'pong' is not the file ALE knows"):
        make_one(section)
    shutil.copy(source, tmp_path / "pong.bin")
    make_one(section).reset(seed=0)
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(GymnastError, match="The ROM of 'pong' is missing.*unset ALE_ROMS_DIR"):
        make_one(section)
    assert capfd.readouterr().out == ""


def rules(config: EnvConfig) -> Rules:
    found = rules_of(config)
    assert found is not None
    return found


def test_the_protocol_of_a_score() -> None:
    """All that two scores must share, and nothing of what is not looked at."""
    pixels = rules(EnvConfig(id="ALE/Pong-v5", atari={"sticky": 0.0, "life_loss": "terminal"})).protocol()
    assert pixels == {
        "id": "ALE/Pong-v5",
        "obs": "pixels",
        "sticky": 0.0,
        "skip": 4,
        "noops": 30,
        "fire_reset": True,
        "life_loss": "terminal",
        "frame_cap": 108_000,
        "actions": "minimal",
        "mode": None,
        "difficulty": None,
        "max_pool": True,
        "size": [84, 84],
        "gray": True,
        "stack": 4,
        "ale_py": importlib.metadata.version("ale-py"),
    }
    section = {"obs": "ram", "actions": ["NOOP", "FIRE"]}
    ram = rules(EnvConfig(id="ALE/Pong-v5", time_limit=100, atari=section)).protocol()
    assert (ram["actions"], ram["time_limit"]) == (["NOOP", "FIRE"], 100)
    assert "stack" not in ram
    assert rules_of(EnvConfig(id="CartPole-v1")) is None
    assert rules_of(EnvConfig(id="ALE/Pong-v5")) is None


def test_the_protocol_in_one_line() -> None:
    """For `env show` and `eval`."""
    section = {"life_loss": "episode", "mode": 1, "actions": ["NOOP", "FIRE"]}
    line = rules(EnvConfig(id="ALE/Pong-v5", atari=section)).sentence()
    for part in (
        "sticky 0.25,",
        "skip 4",
        "a lost life ends the episode",
        "frame cap 108,000",
        "NOOP FIRE",
        "mode 1",
    ):
        assert part in line
    assert rules_of(EnvConfig(id="CartPole-v1")) is None
