"""Play in a real browser: keys move the env, players change, what is recorded can be replayed, and nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from launch import until
from studio_process import Studio, start_studio
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

pytest.importorskip("playwright", reason="pip install playwright")
from playwright.sync_api import expect

minari = pytest.importorskip("minari", reason="pip install minari[hdf5]")

PLACE = """() => {
  const canvas = document.querySelector("canvas");
  const {data, width, height} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let [count, x, y] = [0, 0, 0];
  for (let i = 4 * width * TOP; i < data.length; i += 4) {
    if (COLOUR(data[i], data[i + 1], data[i + 2])) {
      count += 1; x += (i / 4) % width; y += Math.floor(i / 4 / width);
    }
  }
  return [x / count, y / count, count];
}"""
"""Where the pixels of a colour are, on average."""
POLE = "(r, g, b) => r > 170 && g > 120 && g < 190 && b < 140"
PADDLE = "(r, g, b) => g > 150 && r < 120 && b < 120"
BELOW_THE_SCORE = 34
"""Rows of Pong's screen with digits in the colours of the paddles."""


@pytest.fixture(scope="module")
def studio(trained_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio that writes datasets into a folder of its own."""
    folder = tmp_path_factory.mktemp("play")
    shutil.copytree(trained_store, folder / "runs", symlinks=True)
    one = start_studio(folder / "runs", MINARI_DATASETS_PATH=str(folder / "datasets"))
    one.datasets = folder / "datasets"  # type: ignore[attr-defined]
    yield one
    one.process.kill()
    one.process.wait()


def place(page: Any, colour: str, top: int = 0) -> list[float]:
    return page.evaluate(PLACE.replace("COLOUR", f"({colour})").replace("TOP", str(top)))


def shown(page: Any, name: str) -> str:
    """A row of the panel."""
    row = page.locator(".playing dl div").filter(has=page.locator(f"dt:text-is('{name}')")).first
    return row.locator("dd").inner_text()


def begin(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_selector(".keycaps", timeout=60_000)
    page.wait_for_selector(".playing")


def children(studio: Studio) -> list[int]:
    """Processes that the studio has started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == studio.process.pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def steps(page: Any) -> int:
    return int(shown(page, "step").replace(",", ""))


def test_cart_pole_is_played_recorded_and_replayed(page: Any, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cart waits, goes where its keys say, and the dataset replays in plain Gymnasium to equal observations."""
    begin(page, "/play?config=CartPole-v1&seed=5")
    expect(page.locator(".message")).to_contain_text("waits for a key: ←, →")
    assert page.locator(".of-game .cap").all_inner_texts() == ["←\npush left", "→\npush right"]
    until(lambda: place(page, POLE)[2] > 0)
    start = place(page, POLE)
    page.get_by_label("Dataset").fill("tests/cart")
    page.get_by_role("button", name="Record").click()
    expect(page.locator(".recording")).to_contain_text("tests/cart-v0")
    page.keyboard.down("ArrowRight")
    expect(page.locator(".cap.lit")).to_contain_text("push right")
    page.wait_for_selector(".results tbody tr")
    page.keyboard.up("ArrowRight")
    expect(page.locator(".cap.lit")).to_have_count(0)
    assert place(page, POLE)[0] != start[0]
    env, length, over = gym.make("CartPole-v1"), 0, False
    env.reset(seed=5)
    while not over:
        over = env.step(1)[2]
        length += 1
    assert shown(page, "last length") == str(length) and shown(page, "mean return") == str(length)
    page.keyboard.press("ArrowLeft")  # the end has been seen; then one step of the next episode
    expect(page.locator(".playing dd").first).to_have_text("2")
    page.keyboard.press("ArrowLeft")
    until(lambda: steps(page) >= 1)
    page.get_by_role("button", name="Stop recording").click()
    page.get_by_text("2 episodes,").wait_for()

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(studio.datasets))  # type: ignore[attr-defined]
    dataset = minari.load_dataset("tests/cart-v0")
    assert dataset.total_episodes == 2 and dataset.env_spec.id == "CartPole-v1"
    first, second = dataset.iterate_episodes()
    assert first.actions.tolist() == [1] * length and first.terminations[-1] and not first.truncations[-1]
    assert second.truncations[-1] and not second.terminations[-1], "cut short"
    for seed, episode in ((5, first), (6, second)):
        replayed = [env.reset(seed=seed)[0], *(env.step(action)[0] for action in episode.actions)]
        np.testing.assert_array_equal(np.stack(replayed), episode.observations)


def test_pong_is_played_frame_by_frame(page: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Every frame of the game is a step; the paddle goes where its key says, and a page's shortcut stays out of it."""
    begin(page, "/play?config=ALE/Pong-v5")
    page.keyboard.down("ArrowUp")
    until(lambda: place(page, PADDLE, BELOW_THE_SCORE)[1] < 70)  # the paddle begins in the middle of 176 rows
    page.keyboard.up("ArrowUp")
    page.keyboard.down("ArrowDown")
    until(lambda: place(page, PADDLE, BELOW_THE_SCORE)[1] > 120)
    rate = page.locator(".rate").inner_text()
    page.keyboard.up("ArrowDown")
    page.keyboard.down("ArrowUp")
    page.keyboard.down(" ")  # two keys at once
    until(lambda: shown(page, "action") == "RIGHTFIRE")
    page.keyboard.up("ArrowUp")
    until(lambda: shown(page, "action") == "FIRE")
    page.evaluate("window.dispatchEvent(new Event('blur'))")  # the key goes up where the page does not hear it
    until(lambda: shown(page, "action") == "NOOP")
    page.keyboard.press("r")  # would lead to the list of runs
    expect(page).to_have_url(re.compile("/play"))
    with capsys.disabled():
        print(f"\nPong at 60 frames per second in the browser: {rate}")


def test_a_policy_is_taken_over_paused_and_stepped(page: Any, studio: Studio) -> None:
    run = studio.get("/api/runs")["runs"][0]["id"]
    page.goto(f"/runs/{run}")
    page.locator(f"a.button[href='/play/{run}']").click()  # not the page of games, whose link is there first
    page.wait_for_url(re.compile(f"/play/{run}"))
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_selector(".shares li", timeout=60_000)
    pressed = page.locator("[aria-label='Who plays'] [aria-pressed=true]")
    expect(pressed).to_have_text("policy")
    until(lambda: steps(page) > 3)
    assert float(shown(page, "value").replace(",", "")) != 0.0
    expect(page.locator(".live .stepchart figcaption b")).to_have_text(["value", "reward", "return"])
    until(lambda: len(inked(page, ".live .stepchart canvas")) == 3)
    page.keyboard.press("Tab")
    expect(pressed).to_have_text("you")
    expect(page.locator(".message")).to_contain_text("waits for a key")
    page.keyboard.press("Tab")
    expect(pressed).to_have_text("policy")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".message")).to_contain_text("paused")
    page.get_by_role("button", name="Restart").click()
    expect(page.locator(".playing dd").nth(1)).to_have_text("0")
    for count in ("1", "2"):
        page.keyboard.press("n")
        expect(page.locator(".playing dd").nth(1)).to_have_text(count)
    time.sleep(0.3)
    assert steps(page) == 2, "paused"


def test_chance_respects_the_mask_and_an_error_is_a_sentence(page: Any) -> None:
    """The small env raises when a forbidden action reaches it."""
    begin(page, "/play?config=small_envs:DrawnMask-v0&mode=random&fps=1000")
    page.wait_for_selector(".results tbody tr:nth-child(2)")
    page.goto("/play?config=NoSuchEnv-v0")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("NoSuchEnv-v0")


def test_an_env_without_pictures_is_played_by_its_numbers(page: Any) -> None:
    """Its observation, its reward's terms as live charts, and the return of every episode."""
    begin(page, "/play?config=small_envs:Paid-v0&mode=random&fps=1000")
    expect(page.get_by_text("This env draws no pictures")).to_be_visible()
    expect(page.locator("canvas[aria-label], .stage canvas:visible")).to_have_count(0)
    expect(page.locator(".numbers-only dt")).to_have_text(["0", "1"])
    before = page.locator(".numbers-only dd").first.inner_text()
    expect(page.locator(".numbers-only dd").first).not_to_have_text(before)
    terms = page.locator(".live .stepchart", has_text="reward terms")
    expect(terms).to_contain_text("distance")
    expect(terms.locator("span", has_text="bonus").locator("output")).to_have_text("+0.25")
    page.wait_for_selector(".results tbody tr:nth-child(2)")
    assert len(inked(page, ".live .stepchart canvas")) == 2, "a chart of terms and one of the return"


INKED = """(selector) => [...document.querySelectorAll(selector)].map((canvas) =>
  canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0))"""


def inked(page: Any, selector: str) -> list[bool]:
    """The canvases on which something is drawn."""
    return [found for found in page.evaluate(INKED, selector) if found]


def test_a_game_ends_with_its_page(page: Any, studio: Studio) -> None:
    until(lambda: not children(studio))
    begin(page, "/play?config=FrozenLake-v1&mode=random")
    assert len(children(studio)) == 1
    page.get_by_role("link", name="Runs").click()
    until(lambda: not children(studio))


def test_a_game_that_hangs_is_killed(page: Any, studio: Studio) -> None:
    until(lambda: not children(studio))
    begin(page, "/play?config=FrozenLake-v1&mode=random")
    (child,) = children(studio)
    os.kill(child, signal.SIGSTOP)
    page.goto("/")
    until(lambda: not children(studio))


def test_a_run_from_elsewhere_asks_for_trust(studio: Studio) -> None:
    """Nothing that its config names is imported; the page shows why."""
    run = studio.get("/api/runs")["runs"][1]["id"]
    path = studio.root / run / "config.json"
    config = json.loads(path.read_text())
    config["env"]["module"] = "evilmod"
    path.write_text(json.dumps(config))
    with connect(studio.address.replace("http", "ws") + "/play/session", origin=studio.address) as socket:
        socket.send(json.dumps({"run": run}))
        said = json.loads(socket.recv(timeout=60))["error"]
    assert "evilmod" in said and "--trust" in said


def test_another_site_cannot_play(studio: Studio) -> None:
    address = studio.address.replace("http", "ws") + "/play/session"
    with pytest.raises(InvalidStatus):
        connect(address, origin="http://evil.example")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"config": "--help"}, "is not an env"),
        ({"config": "/etc/passwd"}, "is not an env"),
        ({"config": "CartPole-v1", "mode": "--help"}, "mode is one of"),
        ({"config": "CartPole-v1", "seed": "1"}, "whole number"),
        ({"config": "CartPole-v1", "overrides": ["--trust"]}, "overrides is a list"),
        ({"run": "../.."}, "no run"),
        ({"run": "@last", "checkpoint": "../x"}, "name of a checkpoint"),
        ([1], "no JSON object"),
    ],
)
def test_what_makes_no_sense_is_answered_by_a_sentence(studio: Studio, wanted: Any, sentence: str) -> None:
    address = studio.address.replace("http", "ws") + "/play/session"
    with connect(address, origin=studio.address) as socket:
        socket.send(json.dumps(wanted))
        assert sentence in json.loads(socket.recv(timeout=20))["error"]
    assert not children(studio)
