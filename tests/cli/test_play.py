"""`gymnast play` in the terminal: what is typed, mistyped, and printed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import av
import pytest
from launch import gymnast as command
from launch import start, stop, until
from typer.testing import CliRunner

from gymnast.cli.app import app
from gymnast.errors import UsageError


def test_episodes_are_printed_and_repeat_themselves(folder: Path) -> None:
    """Random play of seed 7, twice; the numbers of the JSON are those of the lines."""
    first = command("play", "CartPole-v1", "--headless", "-e", "3", "--seed", "7", cwd=folder)
    told = json.loads(
        command("enjoy", "CartPole-v1", "--headless", "-e", "3", "--seed", "7", "--json", cwd=folder).stdout
    )
    assert first.returncode == 0
    lines = first.stdout.splitlines()
    assert lines[0] == "CartPole-v1:ppo: random plays"
    for number, episode in enumerate(told["episodes"], 1):
        length, seed = episode["length"], episode["seed"]
        assert lines[number] == (f"episode {number}: return {length}, {length} steps, terminated, seed {seed}")
    assert [episode["seed"] for episode in told["episodes"]] == [7, 8, 9]
    assert told["mean"] == pytest.approx(sum(episode["ret"] for episode in told["episodes"]) / 3)


def test_the_film_of_a_game_has_a_picture_per_step(folder: Path) -> None:
    """One per step of the agent and one for the beginning, of every episode; with a JSON beside it."""
    done = command(
        "play", "ALE/Pong-v5", "env.atari.frame_cap=400", "--headless", "-o", "pong.mp4", "-e", "2", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    about = json.loads((folder / "pong.json").read_text())
    with av.open(str(folder / "pong.mp4")) as film:
        frames = sum(1 for _ in film.decode(video=0))
    assert frames == sum(episode["length"] + 1 for episode in about["episodes"])
    assert about["config"] == "ALE/Pong-v5:rgb_ppo"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["CartPole-v1", "--mode", "robot"], "--mode is one of policy, human, random"),
        (["CartPole-v1", "--headless", "--mode", "human"], "--headless has no keyboard"),
        (["CartPole-v1", "--headless", "--mode", "policy"], "not a run, so there is no policy"),
        (["CartPole-v1", "--headless", "--record", "film.avi"], "avi"),
        (["CartPol-v1"], "Did you mean 'CartPole-v1'"),
        (["CartPole-v1", "algo.gama=1"], "Did you mean 'algo.gamma'"),
        (["CartPole-v1", "--json"], "add --headless"),
        (["@last", "algo.gamma=0.9"], "played as it was trained"),
        (["@last", "--headless"], "There are no runs"),
    ],
)
def test_mistakes_are_answered_by_a_sentence(folder: Path, arguments: list[str], words: str) -> None:
    """And leave nothing behind."""
    error = CliRunner().invoke(app, ["play", *arguments]).exception
    assert isinstance(error, UsageError)
    assert words in str(error)
    assert not list(folder.iterdir())


def test_an_env_that_cannot_draw_says_so_and_is_played_without_a_picture(folder: Path) -> None:
    shy = (
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control import MountainCarEnv\n"
        "class Shy(MountainCarEnv):\n"
        "    def __init__(self): super().__init__()\n"
        "gym.register('Shy-v0', 'shy:Shy', max_episode_steps=9)\n"
    )
    (folder / "shy.py").write_text(shy)
    done = command("play", "Shy-v0", "env.module=shy", "--headless", "-o", "x.mp4", cwd=folder)
    assert done.returncode == 1
    assert "Shy-v0 cannot render" in done.stderr
    assert "--headless and without --record" in done.stderr
    assert not list(folder.glob("*x.mp4*"))
    blind = command("play", "Shy-v0", "env.module=shy", "--headless", cwd=folder)
    assert "return -9, 9 steps, truncated" in blind.stdout


def test_ctrl_c_ends_a_film_in_good_order(folder: Path) -> None:
    """Without a window, too: what was played is in it."""
    process = start("play", "Acrobot-v1", "--headless", "-e", "1000", "-o", "long.mp4", cwd=folder)
    until(lambda: (folder / ".long.mp4.part").exists() and (folder / ".long.mp4.part").stat().st_size > 0)
    said, complaints = stop(process, signal.SIGINT)
    assert process.returncode == 130, complaints
    assert "Traceback" not in complaints
    with av.open(str(folder / "long.mp4")) as film:
        frames = sum(1 for _ in film.decode(video=0))
    assert f"({frames} frames)" in said


def test_playing_without_a_policy_imports_no_torch(folder: Path) -> None:
    """And no pygame window either: the terminal is up at once."""
    code = (
        "import sys; sys.argv = ['gymnast', 'play', 'FrozenLake-v1', '--headless']\n"
        "from gymnast.cli.app import app\n"
        "app(standalone_mode=False)\n"
        "assert 'torch' not in sys.modules and 'gymnast.play.window' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
