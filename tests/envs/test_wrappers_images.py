"""Images: each wrapper beside an env and on the batch against plain numpy, and all of them against ALE's own frames."""

from __future__ import annotations

import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from wrapper_envs import ImageEnv

from gymnast.config.schema import EnvConfig, WrapperConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.wrappers import wrap, wrap_single
from gymnast.errors import ConfigError, MissingPackageError

N_ENVS, STEPS, SEEDS = 3, 40, [4, 9, 2]


def record(envs):
    """All rows and final observations."""
    row = envs.new_row()
    envs.reset(SEEDS, row)
    seen = [copy(row.obs)]
    finals = []
    for _ in range(STEPS):
        ended = envs.step(np.zeros(N_ENVS, np.int64), row)
        seen.append(copy(row.obs))
        finals += [(episode.index, copy(episode.final_obs)) for episode in ended]
    assert len(finals) > 5
    return seen, finals


def copy(obs):
    return {key: np.array(value) for key, value in obs.items()} if isinstance(obs, dict) else np.array(obs)


def named(*wrappers):
    return [WrapperConfig(id=name, args=args) for name, args in wrappers]


def area(image, width, height):
    """Area interpolation written out: each new pixel is the mean of what it covers."""
    cover = []
    for new, old in ((height, image.shape[0]), (width, image.shape[1])):
        edges = np.arange(new + 1) * old / new
        left, right = np.maximum(edges[:-1, None], np.arange(old)), np.minimum(edges[1:, None], np.arange(old) + 1)
        cover.append(np.clip(right - left, 0, None) * new / old)
    return np.einsum("ih,jw,hw...->ij...", cover[0], cover[1], image.astype(np.float64))


def gray(image):
    """ALE's formula in floating point."""
    return np.floor(image @ np.array([0.2989, 0.5870, 0.1140]) + 0.5).astype(np.uint8)


def cropped(image):
    return image[..., 2:-3, 1:, :] if image.shape[-1] == 3 else image[..., 2:-3, 1:]


def blackened(image):
    image = image.copy()
    image[..., 0:3, 1:5, :] = 0
    image[..., 11:12, 0:10, :] = 0
    return image


def quantised(levels):
    return lambda image: np.rint((image.astype(int) * levels // 256) * 255 / (levels - 1)).astype(np.uint8)


CASES = {
    "gray": (("gray", {}), gray, (12, 10)),
    "crop": (("crop", {"top": 2, "bottom": 3, "left": 1}), cropped, (7, 9, 3)),
    "mask_region": (("mask_region", {"rectangles": [[1, 0, 4, 3], [0, 11, 10, 1]]}), blackened, (12, 10, 3)),
    "quantise 2": (("quantise", {"levels": 2}), quantised(2), (12, 10, 3)),
    "quantise 5": (("quantise", {"levels": 5}), quantised(5), (12, 10, 3)),
    "quantise 256": (("quantise", {"levels": 256}), lambda image: image, (12, 10, 3)),
}


@pytest.mark.parametrize("where", ["each env", "batch"])
@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_change_of_every_picture(case, parts, where):
    wrapper, reference, shape = CASES[case]
    bare = record(InProcessVector(lambda: ImageEnv(parts=parts), N_ENVS))
    if where == "each env":
        envs = InProcessVector(lambda: wrap_single(ImageEnv(parts=parts), named(wrapper)), N_ENVS)
    else:
        envs = wrap(InProcessVector(lambda: ImageEnv(parts=parts), N_ENVS), named(wrapper), single_envs=False)
    space = envs.observation_space["screen"] if parts else envs.observation_space
    assert space.shape == shape and space.dtype == np.uint8
    seen, finals = record(envs)
    for found, raw in zip(seen, bare[0]):
        screen, other = (found["screen"], raw["screen"]) if parts else (found, raw)
        np.testing.assert_array_equal(screen, reference(other))
        assert all(space.contains(one) for one in screen)
        if parts:
            np.testing.assert_array_equal(found["health"], raw["health"])
    for (i, found), (j, raw) in zip(finals, bare[1], strict=True):
        assert i == j
        np.testing.assert_array_equal(found["screen"] if parts else found, reference(raw["screen"] if parts else raw))


@pytest.mark.parametrize("where", ["each env", "batch"])
@pytest.mark.parametrize("shape", [(12, 10, 3), (12, 10), (12, 10, 1), (12, 10, 5)])
@pytest.mark.parametrize(("width", "height"), [(5, 4), (7, 5), (10, 12)])
def test_resize_averages_areas(shape, width, height, where):
    bare = record(InProcessVector(lambda: ImageEnv(shape), N_ENVS))
    wrapper = named(("resize", {"width": width, "height": height}))
    if where == "each env":
        envs = InProcessVector(lambda: wrap_single(ImageEnv(shape), wrapper), N_ENVS)
    else:
        envs = wrap(InProcessVector(lambda: ImageEnv(shape), N_ENVS), wrapper, single_envs=False)
    assert envs.observation_space == spaces.Box(0, 255, (height, width, *shape[2:]), np.uint8)
    seen, finals = record(envs)
    for found, raw in [*zip(seen, bare[0]), *(([a], [b]) for (_, a), (_, b) in zip(finals, bare[1]))]:
        for one, other in zip(found, raw):
            assert np.abs(one.astype(float) - area(other, width, height)).max() <= 0.51


@settings(max_examples=40, deadline=None)
@given(*[st.integers(2, 40)] * 4)
def test_keep_aspect_pads_with_black(width, height, old_width, old_height):
    env = ImageEnv((old_height, old_width))
    image = np.full((old_height, old_width), 200, np.uint8)
    env.draw = lambda: image
    wrapped = wrap_single(env, named(("resize", {"width": width, "height": height, "keep_aspect": True})))
    found, _ = wrapped.reset(seed=0)
    assert found.shape == (height, width) == wrapped.observation_space.shape
    rows, columns = np.flatnonzero(found.any(1)), np.flatnonzero(found.any(0))
    picture = found[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert (picture == 200).all() and found.sum() == picture.sum(dtype=int)
    scale = min(width / old_width, height / old_height)
    assert abs(picture.shape[0] - old_height * scale) <= 1 and abs(picture.shape[1] - old_width * scale) <= 1
    assert abs(rows[0] - (height - 1 - rows[-1])) <= 1 and abs(columns[0] - (width - 1 - columns[-1])) <= 1


@pytest.mark.parametrize("levels", [2, 3, 10])
def test_numbers_between_bounds_are_quantised_too(levels):
    class Numbers(ImageEnv):
        def __init__(self):
            super().__init__()
            self.observation_space = spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 1.0]), dtype=np.float64)

        def draw(self):
            return self.np_random.uniform(self.observation_space.low, self.observation_space.high)

    bare = record(InProcessVector(Numbers, N_ENVS))[0]
    inside = record(InProcessVector(lambda: wrap_single(Numbers(), named(("quantise", {"levels": levels}))), N_ENVS))
    batch = record(wrap(InProcessVector(Numbers, N_ENVS), named(("quantise", {"levels": levels})), single_envs=False))
    np.testing.assert_equal(inside, batch)  # to the bit, wherever it runs
    for found, raw in zip(inside[0], bare):
        step = np.array([4.0, 1.0]) / (levels - 1)
        level = (found - [-1.0, 0.0]) / step
        np.testing.assert_allclose(level, np.round(level), atol=1e-5)
        np.testing.assert_array_equal(
            np.round(level), np.minimum((raw - [-1.0, 0.0]) / [4.0, 1.0] * levels, levels - 1).astype(int)
        )


@pytest.mark.parametrize("where", ["each env", "batch"])
def test_some_components_are_seen_in_the_order_they_are_named(where):
    bare, finals = record(InProcessVector(lambda: gym.make("CartPole-v1"), N_ENVS))
    wrapper = named(("select", {"components": [2, 0]}))
    if where == "each env":
        envs = InProcessVector(lambda: wrap_single(gym.make("CartPole-v1"), wrapper), N_ENVS)
    else:
        envs = wrap(InProcessVector(lambda: gym.make("CartPole-v1"), N_ENVS), wrapper, single_envs=False)
    assert envs.observation_space.high.tolist() == pytest.approx([0.41887903, 4.8])
    seen, cut = record(envs)
    np.testing.assert_array_equal(seen, np.asarray(bare)[..., [2, 0]])
    assert finals and [one.tolist() for _, one in cut] == [one[[2, 0]].tolist() for _, one in finals]


@pytest.mark.parametrize(
    ("name", "args", "shape", "words"),
    [
        ("select", {"components": [1]}, (12, 10), "'select' needs vectors, this env has observations Box"),
        ("gray", {}, (12, 10), "'gray' needs images of bytes [height, width, 3], this env has Box"),
        ("crop", {"top": 6, "bottom": 6}, (12, 10), "'crop' would leave nothing of an image of 10×12 pixels"),
        ("mask_region", {"rectangles": [[5, 0, 6, 1]]}, (12, 10), "cannot black out [5, 0, 6, 1]"),
        ("mask_region", {"rectangles": [[0, 0, 0, 1]]}, (12, 10), "a rectangle is [x, y, width, height]"),
        ("resize", {}, (3, 4, 5, 6), "'resize' needs images"),
    ],
)
def test_what_does_not_fit_a_picture_is_said(name, args, shape, words):
    with pytest.raises(ConfigError) as caught:
        wrap_single(ImageEnv(shape), named((name, args)))
    assert words in str(caught.value)


def test_resize_without_opencv_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingPackageError, match=r'pip install "gymnast\[image\]"'):
        wrap_single(ImageEnv(), named(("resize", {})))


# ---- ALE -------------------------------------------------------------------------------------------------------------

ATARI = ["gray", {"id": "frame_skip", "skip": 4, "max_pool": True}, "resize", {"id": "frame_stack", "padding": "zero"}]


@pytest.mark.parametrize(("game", "steps"), [("pong", 100), ("breakout", 250), ("qbert", 100)])
def test_our_wrappers_give_the_frames_of_ales_own_vector_env(game, steps):
    """Pixel for pixel over whole games; the last frame of a game that ends within a skip is left out: ALE's is older."""
    ale_py = pytest.importorskip("ale_py")
    options = {"noop_max": 0, "use_fire_reset": False, "reward_clipping": False}
    native = ale_py.AtariVectorEnv(game, 1, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP, **options)
    kwargs = {"frameskip": 1, "repeat_action_probability": 0.0}
    config = EnvConfig.model_validate({"id": f"ALE/{game.title()}-v5", "kwargs": kwargs, "wrappers": ATARI})
    envs = make_envs(config, 1)
    assert envs.observation_space == native.single_observation_space
    row = envs.new_row()
    envs.reset([5], row)
    frames, _ = native.reset(seed=np.array([5]))
    np.testing.assert_array_equal(row.obs, frames)
    random, games = np.random.default_rng(0), 0
    for _ in range(steps):
        action = random.integers(0, envs.action_space.n, 1)
        ended = envs.step(action, row)
        frames, reward, terminated, truncated, _ = native.step(action)
        np.testing.assert_array_equal(row.obs, frames)
        assert (row.reward[0], bool(row.terminated[0])) == (reward[0], bool(terminated[0]))
        games += len(ended)
    assert games or game != "breakout"
    native.close()
    envs.close()


def test_skipping_twice_is_refused():
    pytest.importorskip("ale_py")
    with pytest.raises(
        ConfigError, match=r"would skip twice: ALE/Pong-v5 .*frameskip 4.*Set env\.kwargs\.frameskip to 1"
    ):
        make_envs(EnvConfig.model_validate({"id": "ALE/Pong-v5", "wrappers": ["frame_skip"]}), 1)
