"""What films say below their pictures: letters as pygame draws them itself, and pictures that stay as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pygame
import pytest
from test_trace import make
from test_video import decode

from gymnast.config.spec import Component, EnvSpec
from gymnast.evaluation import lettering
from gymnast.evaluation.film import Caption
from gymnast.evaluation.labels import action_label
from gymnast.evaluation.overlay import Captioned, caption_strip
from gymnast.evaluation.publishing import HEIGHT, WIDTH, Published, fitted
from gymnast.evaluation.trace import record_episode
from gymnast.evaluation.video import VideoWriter


class Shown:
    """A film that keeps what it is given."""

    black = False

    def __init__(self) -> None:
        self.pictures: list[np.ndarray] = []
        self.captions: list[Caption] = []

    def begin(self, fps: float) -> None:
        pass

    def wants(self, frame: int) -> bool:
        return True

    def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
        self.pictures.append(picture.copy())
        self.captions.append(caption)


def test_letters_are_those_of_the_font() -> None:
    """Side by side, each as the font draws it alone."""
    text, size = "step 1,234 push left", 24
    page = np.zeros((40, 300, 3), np.uint8)
    end = lettering.write(page, text, 0, 0, size, (255, 255, 255))
    pygame.font.init()
    font = pygame.font.Font(None, size)
    x = 0
    for letter in text:
        alone = pygame.surfarray.array_alpha(font.render(letter, True, (255, 255, 255))).T
        if letter != " ":
            np.testing.assert_array_equal(page[: alone.shape[0], x : x + alone.shape[1], 0], alone)
        x += alone.shape[1]
    assert end == x == lettering.width(text, size) == pytest.approx(font.size(text)[0], abs=6)


def test_letters_survive_a_closed_window() -> None:
    lettering.letters(20)
    pygame.quit()
    page = np.zeros((30, 200, 3), np.uint8)
    assert lettering.write(page, "漢字 ok\n", 0, 0, 20, (255, 255, 255)) > 0 and page.any()
    assert lettering.write(page, "far too long " * 50, 0, 0, 20, (1, 2, 3)) <= 200


def test_labels() -> None:
    spec = EnvSpec(actions=["left", "right"], action_components=[Component(name="gas"), Component(name="brake")])
    assert action_label(1, spec) == "right"
    assert action_label(7, spec) == "action 7"
    assert action_label([0.5, -1.0], spec) == "gas +0.50, brake -1.00"
    assert action_label([1, 0, 1], spec) == "1, 0, 1"
    assert action_label([0.0] * 9, spec).endswith("...")


def test_pictures_stay_and_captions_differ() -> None:
    policy, config = make({"id": "CartPole-v1"})
    plain, shown = Shown(), Shown()
    trace = record_episode(policy, config.env, seed=3, film=plain)
    record_episode(policy, config.env, seed=3, film=Captioned(shown, config.spec))
    height = plain.pictures[0].shape[0]
    assert len(shown.pictures) == len(trace) + 1
    for bare, picture in zip(plain.pictures, shown.pictures):
        np.testing.assert_array_equal(picture[:height], bare)
    strips = {picture[height:].tobytes() for picture in shown.pictures}
    assert len(strips) == len(shown.pictures)
    # What a caption says is what the trace knows.
    for step, caption in enumerate(plain.captions[:-1]):
        assert (caption.step, caption.action, caption.value) == (step, trace.actions[step], trace.values[step])
        assert caption.ret == pytest.approx(sum(trace.own_rewards[:step]))
    last = plain.captions[-1]
    assert (last.step, last.ret, last.reward) == (len(trace), trace.ret, trace.own_rewards[-1])
    assert last.ending == "end of the episode" and last.action is None


@pytest.mark.parametrize("width", [320, 600, 1280])
def test_a_strip_fits_its_picture(width: int) -> None:
    caption = Caption(12_345, 0, -1234.5, -0.25, 98765.4)
    strip = caption_strip(caption, width, EnvSpec(actions=["x" * 400]), "note")
    assert strip.shape[1] == width and strip.std() > 0


def test_a_published_film_is_1080p_and_holds_every_picture(tmp_path: Path) -> None:
    policy, config = make({"id": "FrozenLake-v1"})
    path = tmp_path / "cut.mp4"
    with VideoWriter(path) as video:
        trace = record_episode(policy, config.env, seed=5, film=Published(video, config.spec, "FrozenLake", "note"))
    frames, facts = decode(path)
    assert frames[0].shape == (HEIGHT, WIDTH, 3) and len(frames) == len(trace) + 1
    assert facts["rate"] == trace.fps
    assert frames[0][:150].std() > 5 and frames[0][200:900, 600:1300].std() > 5


def test_small_pictures_stay_sharp_and_large_ones_fit() -> None:
    dots = np.random.default_rng(0).integers(0, 255, (10, 12, 3), np.uint8)
    large = fitted(dots, 500, 400)
    assert large.shape == (400, 480, 3)
    np.testing.assert_array_equal(large[::40, ::40], dots)
    assert fitted(np.zeros((2000, 1000, 3), np.uint8), 500, 400).shape == (400, 200, 3)
