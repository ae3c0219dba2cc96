"""The inspector: numbers against a recomputation in plain Gymnasium and numpy, pictures against their step, what if, maps."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import polars
import pytest
from launch import gymnast as command
from studio_process import Studio

import gymnast

pytest.importorskip("playwright", reason="pip install playwright")
from playwright.sync_api import expect


def trained(folder: Path, *words: str) -> str:
    """Train a run; its id."""
    done = command("train", *words, "--quiet", "train.stop_when_solved=false", cwd=folder)
    assert done.returncode == 0, done.stderr
    return (folder / "runs" / "@last").resolve().name


def asked(studio: Studio, run: str, **request: Any) -> dict[str, Any]:
    """The trace of an episode, rolled out by the studio."""
    status, answer, _ = studio.request(f"/api/runs/{run}/traces", request)
    assert status == 200, answer
    deadline = time.monotonic() + 90
    while answer["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
        answer = studio.get(f"/api/runs/{run}/traces/{answer['key']}")
    assert answer["state"] == "done", answer
    trace: dict[str, Any] = studio.get(f"/files/{run}/traces/{answer['key']}/trace.json")
    return trace | {"folder": studio.root / run / "traces" / answer["key"], "key": answer["key"]}


@pytest.fixture(scope="module")
def runs(studio: Studio) -> dict[str, str]:
    """One small run of every kind."""
    folder = studio.root.parent
    small = ("policy.hidden=[8]", "eval.episodes=2")
    image = ("env.n_envs=2", "algo.n_steps=16", "algo.n_epochs=1", "eval.episodes=1")
    return {
        "discrete": trained(folder, "CartPole-v1:ppo", "-n", "2000", *small),
        "reinforce": trained(folder, "CartPole-v1:reinforce", "-n", "1000", *small),
        "box": trained(folder, "Pendulum-v1:ppo", "-n", "2000", *small),
        "grid": trained(folder, "FrozenLake-v1:ppo", "-n", "2000", *small, "env.kwargs.is_slippery=false"),
        "bandit": trained(folder, "gymnast/Bandit-v0:ppo", "-n", "1000", *small),
        "paid": trained(folder, "small_envs:Paid-v0", "--algo", "ppo", "-n", "300", "env.n_envs=2", "eval.episodes=1"),
        "image": trained(folder, "numbered_env:Numbered-v0", "--algo", "ppo", "-n", "32", *image),
    }  # fmt: skip


def played(run: str, root: Path, env_id: str, seed: int) -> tuple[list[Any], list[Any], list[float]]:
    """Observations, actions and rewards of an episode in plain Gymnasium."""
    agent, env = gymnast.load(run, runs_dir=root), gym.make(env_id)
    obs, _ = env.reset(seed=seed)
    observations, actions, rewards, over = [obs], [], [], False
    while not over:
        actions.append(agent.predict(obs))
        obs, reward, terminated, truncated, _ = env.step(actions[-1])
        observations.append(obs)
        rewards.append(float(reward))
        over = terminated or truncated
    return observations, actions, rewards


def test_numbers_are_those_of_plain_gymnasium_and_numpy(studio: Studio, runs: dict[str, str]) -> None:
    """Values, returns, TD errors and advantages, each computed here again."""
    trace = asked(studio, runs["discrete"], seed=3)
    observations, actions, rewards = played(runs["discrete"], studio.root, "CartPole-v1", 3)
    columns = trace["columns"]
    assert columns["action"] == [int(action) for action in actions] and trace["rewards"] == rewards
    shown = np.array([columns[name] for name in columns if name.startswith("obs.")]).T
    np.testing.assert_allclose(shown, observations[:-1], rtol=1e-6)
    agent = gymnast.load(runs["discrete"], runs_dir=studio.root)
    scale = agent.credit().algorithm.scaled(np.ones((1, 1), np.float32))[0, 0]
    gamma, lam = trace["coefficients"]["gamma"], trace["coefficients"]["gae_lambda"]
    value, scaled = np.array(trace["values"]), scale * np.array(rewards)
    last = 0.0 if columns["terminated"][-1] else value[-1]
    following = np.append(value[1:-1], last)
    delta = scaled + gamma * following - value[:-1]
    advantage, returns = np.zeros_like(delta), np.zeros_like(delta)
    running = total = 0.0
    for step in reversed(range(len(delta))):
        running = delta[step] + gamma * lam * running
        total = scaled[step] + gamma * total
        advantage[step], returns[step] = running, total
    np.testing.assert_allclose(trace["td_errors"], delta, atol=1e-4)
    np.testing.assert_allclose(trace["advantages"], advantage, atol=1e-3)
    np.testing.assert_allclose(trace["returns"], returns, rtol=1e-4)


def test_other_coefficients_change_only_what_is_made_of_the_episode(studio: Studio, runs: dict[str, str]) -> None:
    own, other = asked(studio, runs["discrete"]), asked(studio, runs["discrete"], gamma=0.5, gae_lambda=0.0)
    assert own["columns"]["action"] == other["columns"]["action"] and own["values"] == other["values"]
    np.testing.assert_allclose(other["advantages"], other["td_errors"], atol=1e-6)
    assert max(other["returns"]) < max(own["returns"])


def test_an_episode_is_rolled_out_once(studio: Studio, runs: dict[str, str]) -> None:
    first = asked(studio, runs["discrete"], seed=4)
    before = (first["folder"] / "trace.json").stat().st_mtime_ns
    assert asked(studio, runs["discrete"], seed=4)["key"] == first["key"]
    assert (first["folder"] / "trace.json").stat().st_mtime_ns == before
    assert asked(studio, runs["discrete"], seed=5)["key"] != first["key"]


def test_what_if(studio: Studio, runs: dict[str, str]) -> None:
    """Everything up to the forced step is the same, and the state after it is the env's own."""
    plain_episode = asked(studio, runs["discrete"], seed=3)
    step = plain_episode["length"] // 2
    other = 1 - plain_episode["columns"]["action"][step]
    forced = asked(studio, runs["discrete"], seed=3, force=f"{step}:{other}")
    names = [name for name in forced["columns"] if name.startswith("obs.")]
    for name in names:
        assert forced["columns"][name][: step + 1] == plain_episode["columns"][name][: step + 1]
    assert forced["columns"]["action"][step] == other
    env = gym.make("CartPole-v1")
    env.reset(seed=3)
    for action in forced["columns"]["action"][: step + 1]:
        obs = env.step(action)[0]
    np.testing.assert_allclose([forced["columns"][name][step + 1] for name in names], obs, rtol=1e-6)


@pytest.mark.parametrize("kind", ["reinforce", "box", "grid", "bandit", "image"])
def test_every_kind_of_env_has_an_episode(studio: Studio, runs: dict[str, str], kind: str) -> None:
    trace = asked(studio, runs[kind], see=kind == "image")
    assert trace["length"] == len(trace["rewards"]) > 0
    assert abs(sum(trace["rewards"]) - trace["return"]) < 1e-3
    film = next(film for film in trace["films"] if film["name"] == "frames")
    with av.open(str(trace["folder"] / film["file"])) as container:
        frames = list(container.decode(video=0))
    assert len(frames) == film["count"] == trace["length"] + 1 and all(frame.key_frame for frame in frames)
    if kind == "reinforce":
        assert trace["advantage_name"] == "return − baseline" and trace["td_errors"] is None
    if kind == "box":
        assert trace["probabilities"] is None
    if kind == "image":
        names = {film["name"] for film in trace["films"]}
        assert {"input", "cam_action", "saliency_action", "layer1"} <= names


def test_the_terms_of_the_reward_are_columns(studio: Studio, runs: dict[str, str]) -> None:
    """Also one that the first step does not have; in the page's table and in Parquet, and they add up to the reward."""
    trace = asked(studio, runs["paid"])
    assert trace["no_picture"] and "frames" not in [film["name"] for film in trace["films"]]
    columns = trace["columns"]
    assert columns["term.bonus"][0] is None and set(columns["term.bonus"][1:]) <= {0.25}
    sums = [distance + (bonus or 0.0) for distance, bonus in zip(columns["term.distance"], columns["term.bonus"])]
    np.testing.assert_allclose(sums, trace["rewards"], atol=1e-6)
    table = polars.read_parquet(trace["folder"] / "episode.parquet")
    assert table["term.bonus"].to_list() == columns["term.bonus"]
    np.testing.assert_allclose(table["term.distance"], columns["term.distance"])
    np.testing.assert_allclose(table["td_error"], trace["td_errors"], rtol=1e-6)


def test_the_map_is_the_policy_in_every_state(studio: Studio, runs: dict[str, str]) -> None:
    trace = asked(studio, runs["grid"], max_steps=1)
    agent = gymnast.load(runs["grid"], runs_dir=studio.root)
    letters = [cell["letter"] for row in trace["map"]["rows"] for cell in row]
    assert "".join(letters) == "SFFFFHFHFFFHHFFG"
    for row in trace["map"]["rows"]:
        for cell in row:
            assert int(np.argmax(cell["probabilities"])) == agent.predict(cell["state"])


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"checkpoint": "../best"}, "A checkpoint is"), ({"force": "--trust"}, "STEP:ACTION"), ({"seed": -1}, "whole number"),
        ({"temperature": "hot"}, "temperature"), ({"env_kwargs": [1]}, "JSON object"), ({"checkpoint": "step=3"}, "step=3"),
    ],
)  # fmt: skip
def test_wrong_requests_are_sentences(
    studio: Studio, runs: dict[str, str], body: dict[str, Any], sentence: str
) -> None:
    status, found, _ = studio.request(f"/api/runs/{runs['discrete']}/traces", body)
    assert status == 400 and sentence in found["error"]


def test_a_failed_rollout_says_why(studio: Studio, runs: dict[str, str]) -> None:
    for body, sentence in (({"force": "0:7"}, "cannot be forced"), ({"env_kwargs": {"nonsense": 1}}, "nonsense")):
        _, answer, _ = studio.request(f"/api/runs/{runs['discrete']}/traces", body)
        while answer["state"] == "running":
            time.sleep(0.1)
            answer = studio.get(f"/api/runs/{runs['discrete']}/traces/{answer['key']}")
        assert answer["state"] == "failed" and sentence in answer["error"], answer


# --- the page -------------------------------------------------------------------------------------------------------


JUMP = """async (steps) => {
  const slider = document.querySelector("[aria-label=Step]"), video = document.querySelector("video.game");
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d", { willReadFrequently: true });
  const frame = () => new Promise((ready) => requestAnimationFrame(ready));
  const shown = () => {
    // The env paints its step as eight squares, black or white, from the left.
    canvas.width = video.videoWidth; canvas.height = video.videoHeight;
    context.drawImage(video, 0, 0);
    let number = 0;
    for (let bit = 0; bit < 8; bit += 1) {
      const x = Math.floor((bit + 0.5) * canvas.width / 8);
      number = 2 * number + (context.getImageData(x, Math.floor(canvas.height / 2), 1, 1).data[0] > 127 ? 1 : 0);
    }
    return number;
  };
  const found = [];
  for (const step of steps) {
    slider.value = step;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    for (let waited = 0; video.dataset.frame !== String(step) && waited < 600; waited += 1) await frame();
    await frame();
    await frame();
    found.push(shown());
  }
  return found;
}"""
"""Moves the slider as a hand does, and reads from each picture which step it shows."""


def test_each_picture_is_that_of_its_step(page: Any, runs: dict[str, str]) -> None:
    """200 random jumps; the env has painted the number of the step into every picture."""
    page.goto(f"/inspect/{runs['image']}")
    video = page.locator("video.game")
    video.wait_for(timeout=60_000)
    last = int(page.get_by_label("Step", exact=True).get_attribute("max"))
    steps = np.random.default_rng(0).integers(0, last + 1, 200)
    assert page.evaluate(JUMP, steps.tolist()) == steps.tolist()


def test_scrubbing_asks_no_server(page: Any, runs: dict[str, str]) -> None:
    page.goto(f"/inspect/{runs['discrete']}?seed=3")
    page.locator("video.game").wait_for(timeout=60_000)
    page.wait_for_load_state("networkidle")
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    for key in ["ArrowRight"] * 5 + [".", "e", "Home", "d", "v"]:
        page.keyboard.press(key)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("tr.here")).to_have_attribute("data-step", "2")
    expect(page.locator(".transport output")).to_contain_text("step 2 of")
    expect(page.locator("video.game")).to_have_attribute("data-frame", "2")
    assert not [url for url in asked_for if "/files/" not in url]


def test_the_player_jumps_plays_and_has_its_speed(page: Any, studio: Studio, runs: dict[str, str]) -> None:
    """By button and by key; also while the slider has the focus, which holds no text."""
    trace = asked(studio, runs["bandit"], seed=2)
    errors, values, rewards = (np.array(trace[name]) for name in ("td_errors", "values", "rewards"))
    page.goto(f"/inspect/{runs['bandit']}?seed=2")
    page.locator("video.game").wait_for(timeout=60_000)
    at = page.locator(".transport output")
    last = trace["length"]
    (paid,) = np.nonzero(rewards[1:])[0][:1] + 1
    places = (
        ("d", "max |TD|", int(np.argmax(np.abs(errors)))),
        ("v", "min value", int(np.argmin(values[:last]))),
        ("e", "end", last),
    )
    for key, button, place in places:
        page.keyboard.press("Home")
        expect(at).to_contain_text("step 0 of")
        page.keyboard.press(key)
        expect(at).to_contain_text(f"step {place} of")
        page.keyboard.press("Home")
        page.get_by_role("button", name=button, exact=True).click()
        expect(at).to_contain_text(f"step {place} of")
    page.keyboard.press("Home")
    page.get_by_role("button", name="reward ›").click()
    expect(at).to_contain_text(f"step {paid} of")
    page.keyboard.press("Home")
    page.get_by_label("Step", exact=True).focus()
    page.get_by_label("Speed").select_option("8×")
    page.get_by_label("Step", exact=True).focus()
    page.keyboard.press(" ")
    expect(at).to_contain_text(f"step {last} of")  # played to its end
    page.keyboard.press("-")
    expect(page.get_by_label("Speed")).to_have_value("4")


def test_two_episodes_part_where_an_action_was_forced(page: Any, runs: dict[str, str]) -> None:
    page.goto(f"/inspect/{runs['discrete']}?seed=3")
    page.locator("video.game").wait_for(timeout=60_000)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.locator(".chances li:not(.chosen)").hover()
    page.get_by_role("button", name="what if").click()
    page.locator("video.game").nth(1).wait_for(timeout=60_000)
    page.get_by_role("button", name="part at 3").wait_for()
    assert "force%3D3" in page.url or "force=3" in page.url


def test_looking_into_the_network(page: Any, runs: dict[str, str]) -> None:
    page.goto(f"/inspect/{runs['image']}")
    page.get_by_role("button", name="Look into the network").click(timeout=60_000)
    page.get_by_role("button", name="Grad-CAM, action").click(timeout=60_000)
    page.locator("video.heat").wait_for()
    heat, pictures = page.locator("video.heat").bounding_box(), page.locator(".stacked").bounding_box()
    assert heat["height"] <= pictures["height"] + 1 and heat["width"] <= pictures["width"] + 1, (
        "it lies over the picture"
    )
    page.get_by_role("button", name="layer 1").click()
    page.get_by_role("button", name="filters").click()
    page.wait_for_selector("img.filters")


def test_a_changed_map_is_trained_on(page: Any, studio: Studio, runs: dict[str, str]) -> None:
    page.goto(f"/inspect/{runs['grid']}")
    page.get_by_role("button", name="edit the map").click(timeout=60_000)
    page.locator(".editing td button").nth(1).click()
    page.get_by_label("hole").fill("-1")
    page.get_by_role("button", name="Train on this map").click()
    field = page.locator("label.field", has_text="train.env_steps").locator("input")
    field.wait_for(timeout=30_000)
    field.fill("1000")
    page.get_by_text("train.env_steps=1000").first.wait_for()
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile("/runs/[a-z0-9]{5}"), timeout=60_000)
    config = json.loads((studio.root / page.url.rpartition("/")[2] / "config.json").read_text())
    assert config["env"]["kwargs"]["desc"][0] == "SHFF" and config["env"]["kwargs"]["reward_schedule"] == [1, -1, 0]
    page.get_by_role("tab", name="Map").click()
    page.get_by_label("Value and greedy action of every cell").wait_for(timeout=60_000)
