"""The wrapper `pixels`: what is seen is what the env draws, in any way of stepping, and after a resume."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv

from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.wrappers import drawing_mode
from gymnast.envs.wrappers.show import layers
from gymnast.errors import ConfigError, UsageError

SMALL = ["pixels", {"id": "crop", "top": 150, "bottom": 70}, {"id": "resize", "width": 48, "height": 40}, "gray"]


def config(wrappers=SMALL, env_id="CartPole-v1", **more):
    return EnvConfig.model_validate({"id": env_id, "wrappers": wrappers, "vectorization": "inprocess", **more})


@pytest.fixture(autouse=True)
def _no_display(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def test_frames_are_what_the_env_draws():
    """Also the last one of an episode, and the first one of the next."""
    envs, twin = make_envs(config(["pixels"]), 1), gym.make("CartPole-v1", render_mode="rgb_array")
    row = envs.new_row()
    envs.reset([3], row)
    twin.reset(seed=3)
    assert envs.observation_space == gym.spaces.Box(0, 255, (400, 600, 3), np.uint8)
    ends = 0
    for _ in range(30):
        np.testing.assert_array_equal(row.obs[0], twin.render())
        ended = envs.step(np.array([1]), row)
        if twin.step(1)[2]:
            assert len(ended) == 1 and ended[0].terminated
            np.testing.assert_array_equal(ended[0].final_obs, twin.render())
            twin.reset()
            ends += 1
    assert ends == 3
    envs.close()


def test_workers_see_the_same():
    found = []
    for way in ("inprocess", "workers"):
        envs = make_envs(config([*SMALL, "frame_stack"], vectorization=way), 2)
        row = envs.new_row()
        envs.reset([1, 2], row)
        seen = [row.obs.copy()]
        for step in range(12):
            envs.step(np.array([step % 2, 1]), row)
            seen.append(row.obs.copy())
        envs.close()
        found.append(np.array(seen))
    assert found[0].shape == (13, 2, 4, 40, 48) and found[0].std() > 10
    np.testing.assert_array_equal(*found)


def test_goes_on_where_it_was_saved():
    def play(envs, row, steps):
        out = []
        for step in range(steps):
            envs.step(np.array([step % 2, 1]), row)
            out.append((row.obs.copy(), row.terminated.copy()))
        return out

    envs = make_envs(config(), 2)
    assert envs.exact_resume == "snapshot"
    row = envs.new_row()
    envs.reset([1, 2], row)
    play(envs, row, 5)
    state = envs.save_state()
    expected = play(envs, row, 20)
    again = make_envs(config(), 2)
    row = again.new_row()
    again.reset([8, 9], row)
    play(again, row, 3)
    again.load_state(state)
    np.testing.assert_equal(play(again, row, 20), expected)
    assert any(ended.any() for _, ended in expected)


def test_the_env_is_made_so_that_it_draws_only_when_asked():
    assert drawing_mode(config().wrappers) == "rgb_array"
    assert drawing_mode(config(["frame_stack"]).wrappers) is None
    assert make_one(config([])).render_mode is None
    assert make_one(config()).render_mode == "rgb_array"
    assert [layer.text for layer in layers(config())] == [
        "CartPole-v1",
        "pixels",
        "crop(top=150, bottom=70)",
        "resize(48×40)",
        "gray",
    ]


def test_drawing_counts_when_the_way_to_step_is_chosen(monkeypatch):
    monkeypatch.setattr("gymnast.envs.choose.cores", lambda: 2)
    kind, reason = choose_vectorization(config(vectorization="auto", n_envs=8))
    assert kind == "workers" and "a step takes about" in reason
    assert choose_vectorization(config([], vectorization="auto", n_envs=8))[0] == "native"


class DrawsText(CounterEnv):
    """Renders, but no picture."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        return "a picture"


def test_envs_that_cannot_draw_are_refused():
    gym.register("DrawsText-v0", DrawsText)
    gym.register("DrawsNothing-v0", CounterEnv)
    with pytest.raises(ConfigError, match=r"'pixels' needs an env that draws frames .*; DrawsText-v0 drew str\."):
        make_envs(config(env_id="DrawsText-v0"), 1)
    with pytest.raises(UsageError, match="DrawsNothing-v0"):
        make_envs(config(env_id="DrawsNothing-v0"), 1)
    with pytest.raises(ConfigError, match="'pixels' cannot come after 'frame_stack'"):
        make_envs(config(["frame_stack", "pixels"]), 1)
