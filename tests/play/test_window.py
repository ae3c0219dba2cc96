"""The window on a real display, played with real keys: nothing is called, everything is pressed and looked at."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import av
import gymnasium as gym
import numpy as np
import pytest
from desk import MISSING, Desk, desk
from launch import gymnast as command
from launch import until

import gymnast

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}: apt-get install xvfb xdotool")
LANDER, PADDLE = (128, 102, 230), (92, 186, 92)
"""Colours of what the player moves."""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as one:
        yield one


def place(picture: np.ndarray, colour: tuple[int, int, int]) -> tuple[float, float]:
    """Where a colour is, x and y; the score at the top of Pong has the paddle's colour."""
    top = picture.shape[0] // 5
    rows, columns = np.nonzero((np.abs(picture[top:].astype(int) - colour) < 12).all(-1))
    assert len(rows) > 20, "nothing of this colour is on the screen"
    return float(columns.mean()), float(rows.mean() + top)


def changed(here: Desk, before: np.ndarray) -> bool:
    return bool((here.look() != before).any())


def settled(here: Desk) -> np.ndarray:
    """The screen, once two looks at it are equal."""
    looks = [here.look()]

    def still() -> bool:
        time.sleep(0.1)
        looks.append(here.look())
        return bool((looks[-1] == looks[-2]).all())

    until(still)
    return looks[-1]


def test_frozen_lake_is_walked_to_its_goal(here: Desk) -> None:
    """Six keys, six steps; a key that leads nowhere is a step too."""
    here.start("play", "FrozenLake-v1", "env.kwargs.is_slippery=false", "-e", "1")
    start = settled(here)
    here.press("Left")
    until(lambda: changed(here, start))
    here.press("Down", "Down", "Right", "Down", "Right")
    halfway = settled(here)
    here.press("Right")
    assert here.end() == 0, here.said()
    assert "episode 1: return 1, 7 steps, terminated, seed 0" in here.said()
    assert (halfway != start).sum() > 1000


def test_cart_pole_waits_for_keys_and_falls_when_pushed_to_one_side(here: Desk) -> None:
    """The length of the episode is that of plain Gymnasium for the same actions."""
    here.start("play", "CartPole-v1", "--seed", "5", "-e", "1")
    start = settled(here)
    time.sleep(0.5)
    assert not changed(here, start), "without a key nothing moves"
    here.hold("Right")
    here.wait_for("episode 1")
    here.let_go("Right")
    assert here.end() == 0
    env, steps, over = gym.make("CartPole-v1"), 0, False
    env.reset(seed=5)
    while not over:
        _, _, over, _, _ = env.step(1)
        steps += 1
    assert f"return {steps}, {steps} steps, terminated, seed 5" in here.said()


@pytest.mark.parametrize(
    ("config", "one", "other", "colour", "axis"),
    [("LunarLander-v3", "Left", "Right", LANDER, 0), ("ALE/Pong-v5", "Up", "Down", PADDLE, 1)],
)
def test_held_keys_move_what_is_played(
    here: Desk, config: str, one: str, other: str, colour: tuple[int, int, int], axis: int
) -> None:
    """The lander drifts to the side of its key, Pong's paddle goes where its key says; a pause holds the picture still."""
    here.start("play", config, "--fps", "30")
    places = []
    for key in (one, other):
        here.press("r")
        here.hold(key)
        time.sleep(1.2)
        here.press("p")
        here.let_go(key)
        places.append(place(settled(here), colour)[axis])
        here.press("p")
    here.press("q")
    assert here.end() == 0
    assert places[0] < places[1] - 10


def test_help_lists_the_keys_and_goes_away_again(here: Desk) -> None:
    here.start("play", "CartPole-v1")
    start = settled(here)
    here.press("h")
    until(lambda: changed(here, start))
    here.press("h")
    until(lambda: not changed(here, start))
    here.press("Escape")
    assert here.end() == 0


@pytest.mark.full
def test_a_simulator_that_draws_by_opengl_leaves_the_window_its_picture(here: Desk) -> None:
    """MuJoCo and the window share a process; each has a picture."""
    drawn = command(
        "play", "HalfCheetah-v5", "env.time_limit=2", "--headless", "-o", "x.mp4", cwd=here.folder, DISPLAY=here.display
    )
    if drawn.returncode:
        pytest.skip(f"MuJoCo cannot draw on this display: {drawn.stderr}")
    here.start("play", "HalfCheetah-v5", "--mode", "random")
    until(lambda: len(np.unique(here.look().reshape(-1, 3), axis=0)) > 500)
    before = here.look()
    until(lambda: changed(here, before))
    here.press("q")
    assert here.end() == 0


@pytest.mark.parametrize("way", ["cross", "ctrl-c", "terminate"])
def test_a_film_is_whole_however_the_window_ends(here: Desk, way: str) -> None:
    here.start("play", "FrozenLake-v1", "env.kwargs.is_slippery=false", "--record", "walk.mp4")
    start = settled(here)
    here.press("Down", "Down")
    until(lambda: changed(here, start))
    settled(here)
    if way == "cross":
        here.close_window()
    else:
        here.process.send_signal(signal.SIGINT if way == "ctrl-c" else signal.SIGTERM)
    assert here.end() == (0 if way == "cross" else 130)
    with av.open(str(here.folder / "walk.mp4")) as film:
        assert len(list(film.decode(video=0))) == 3
    assert "Traceback" not in here.said()
    assert sorted(path.name for path in here.folder.iterdir()) == ["said.txt", "walk.json", "walk.mp4"]


def test_a_run_plays_as_without_a_window_until_somebody_takes_over(here: Desk) -> None:
    done = gymnast.train("CartPole-v1:ppo", env_steps=4096, runs_dir=here.folder / "runs", seed=1)
    reference = str(done.run.folder)
    alone = command("play", reference, "--headless", "--seed", "3", cwd=here.folder).stdout.splitlines()[1]
    here.start("play", reference, "--seed", "3", "--fps", "400")
    here.wait_for("episode 1")
    assert alone in here.said()
    here.press("Tab")
    time.sleep(0.5)
    settled(here)  # a person has taken over and presses nothing
    here.press("Tab")
    here.wait_for(f"episode {here.said().count('episode') + 1}")
    here.press("q")
    assert here.end() == 0


@pytest.mark.parametrize("display", [None, ":4711"])
def test_without_a_display_a_sentence_says_what_to_do(tmp_path: Path, display: str | None) -> None:
    done = command("play", "CartPole-v1", cwd=tmp_path, DISPLAY=display, SDL_VIDEODRIVER=None, WAYLAND_DISPLAY=None)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "--headless" in done.stderr
    assert "Traceback" not in done.stderr
