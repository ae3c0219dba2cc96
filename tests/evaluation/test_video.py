"""Videos: whole files that play everywhere, with a JSON beside them."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from test_trace import make, record

from gymnast.errors import EnvError, GymnastError, UsageError
from gymnast.evaluation.formats import FORMATS
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.evaluation.video import MIN_SIDE, VideoWriter, encode, write_about

BEGINNINGS = {".mp4": (b"ftyp", 4), ".webm": (b"\x1aE\xdf\xa3", 0), ".gif": (b"GIF89a", 0)}
"""The bytes by which a file of each kind is known, and where they stand."""


def decode(path: Path) -> tuple[list[np.ndarray], Any]:
    """All frames and the stream's facts."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        facts: dict[str, Any] = {"codec": stream.codec_context.name, "format": stream.pix_fmt}
        facts["rate"] = float(stream.average_rate)
        frames = list(container.decode(stream))
        facts["seconds"] = [float(frame.pts * frame.time_base) for frame in frames]
        return [frame.to_ndarray(format="rgb24") for frame in frames], facts


def filmed(env: dict[str, Any], film: VideoWriter, seed: int = 3) -> EpisodeTrace:
    """An episode of a fresh policy, into a film."""
    policy, config = make(env)
    return record_episode(policy, config.env, seed=seed, film=film)


def ramp(count: int, height: int, width: int) -> Iterator[np.ndarray]:
    """Ever brighter pictures."""
    for i in range(count):
        yield np.full((height, width, 3), 10 * i, np.uint8)


@pytest.mark.parametrize("size", [(64, 64), (401, 303), (5, 7), (400, 600)])
def test_any_size_becomes_a_video_that_plays_everywhere(size: tuple[int, int], tmp_path: Path) -> None:
    """H.264, yuv420p, even sides, every frame in order; small pictures enlarged by whole factors."""
    path = tmp_path / "new" / "ramp.mp4"
    assert encode(path, ramp(20, *size), 15) == 20
    frames, facts = decode(path)
    assert len(frames) == 20
    assert (facts["codec"], facts["format"], facts["rate"]) == ("h264", "yuv420p", 15.0)
    height, width, _ = frames[0].shape
    assert height % 2 == width % 2 == 0
    factor = 1 if max(size) >= MIN_SIDE else -(-MIN_SIDE // max(size))
    assert (height, width) == tuple(side * factor - side * factor % 2 for side in size)
    brightness = [frame.mean() for frame in frames]
    np.testing.assert_allclose(brightness, 10 * np.arange(20), atol=4)
    assert [entry.name for entry in path.parent.iterdir()] == ["ramp.mp4"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_file_is_what_its_suffix_says(suffix: str, tmp_path: Path) -> None:
    """Container, codec, size, pace and every frame, however like the one before."""
    path = tmp_path / f"ramp{suffix.upper()}"
    assert encode(path, [np.full((64, 96, 3), 25 * (i // 3), np.uint8) for i in range(12)], 10) == 12
    assert path.read_bytes()[:12].startswith(BEGINNINGS[suffix][0], BEGINNINGS[suffix][1])
    frames, facts = decode(path)
    assert facts["codec"] == {".mp4": "h264", ".webm": "vp9", ".gif": "gif"}[suffix]
    assert [round(frame.mean()) // 25 for frame in frames] == pytest.approx([i // 3 for i in range(12)], abs=1)
    assert facts["rate"] == 10.0
    assert [round(10 * second) for second in facts["seconds"]] == list(range(12))
    assert frames[0].shape == (192, 288, 3)


def test_a_gif_is_never_faster_than_viewers_play(tmp_path: Path) -> None:
    """Viewers show a frame of one hundredth for a tenth of a second: every frame gets two hundredths."""
    path = tmp_path / "fast.gif"
    encode(path, ramp(10, 64, 64), 100)
    frames, facts = decode(path)
    assert len(frames) == 10
    np.testing.assert_allclose(np.diff(facts["seconds"]), 0.02)


def test_colours_survive(tmp_path: Path) -> None:
    """A GIF's palette holds the few colours of a picture exactly, the others come near."""
    picture = np.zeros((256, 256, 3), np.uint8)
    picture[:128, :, 0], picture[128:, :128, 1], picture[128:, 128:, 2] = 200, 150, 250
    for suffix in FORMATS:
        path = tmp_path / f"colours{suffix}"
        encode(path, [picture] * 3, 10)
        difference = np.abs(decode(path)[0][-1].astype(int) - picture).mean()
        assert difference < (0.01 if suffix == ".gif" else 6), suffix


@pytest.mark.parametrize("name", ["x.avi", "x.mkv", "x", "x.mp4.txt"])
def test_other_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    """With the ones there are, before anything is written."""
    with pytest.raises(UsageError, match=r"\.mp4, \.webm or \.gif"):
        VideoWriter(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_how_opaque_a_picture_is_is_left_out(tmp_path: Path) -> None:
    """Some envs draw RGBA; pictures in grey are still refused."""
    path = tmp_path / "alpha.mp4"
    with VideoWriter(path) as film:
        filmed({"id": "Pictures-v0", "kwargs": {"length": 4, "channels": 4}}, film, seed=0)
    assert [round(frame.mean() / 20) for frame in decode(path)[0]] == list(range(5))
    with VideoWriter(tmp_path / "grey.mp4") as film, pytest.raises(EnvError, match="a picture is an array"):
        filmed({"id": "Pictures-v0", "kwargs": {"channels": 1}}, film, seed=0)


@pytest.mark.parametrize("suffix", FORMATS)
def test_episodes_of_a_run(suffix: str, tmp_path: Path) -> None:
    """A frame more than steps for each, one after the other, and a JSON that says what they show."""
    path = tmp_path / f"episode{suffix}"
    with VideoWriter(path) as film:
        traces = [filmed({"id": "Pictures-v0", "kwargs": {"length": n}}, film, seed=n) for n in (4, 9)]
    write_about(path, traces, {"run": "abcde", "checkpoint": "step=64"})
    assert [trace.frames for trace in traces] == [[], []]
    frames, facts = decode(path)
    assert film.count == len(frames) == 4 + 1 + 9 + 1
    shown = [round(frame.mean() / 20) for frame in frames]
    assert shown == [*range(5), *range(10)]
    assert round(facts["rate"]) == 12
    assert not film.black
    about = json.loads((tmp_path / "episode.json").read_text())
    assert (about["run"], about["checkpoint"]) == ("abcde", "step=64")
    assert about["episodes"] == [{"seed": n, "return": float(n), "length": n} for n in (4, 9)]


def test_skipped_frames_play_as_fast_as_the_game(tmp_path: Path) -> None:
    """A picture per step, shown as long as the game took: 12 frames per second, three of them per step, the last step two."""
    env = {"id": "Pictures-v0", "kwargs": {"length": 11}, "wrappers": [{"id": "frame_skip", "skip": 3}]}
    with VideoWriter(tmp_path / "skip.mp4") as film:
        trace = filmed(env, film)
    assert trace.repeats == [3, 3, 3, 2]
    frames, facts = decode(tmp_path / "skip.mp4")
    assert len(frames) == 5
    np.testing.assert_allclose(np.array(facts["seconds"]) * 12, [0, 3, 6, 9, 11], atol=1e-3)


def test_real_env(tmp_path: Path) -> None:
    """CartPole's own pictures survive, at its own 50 frames per second."""
    trace, _ = record({"id": "CartPole-v1"}, frames=True)
    path = tmp_path / "cartpole.mp4"
    with VideoWriter(path) as film:
        filmed({"id": "CartPole-v1"}, film)
    frames, facts = decode(path)
    assert len(frames) == len(trace.frames) == len(trace) + 1
    assert facts["rate"] == 50.0
    for shown, drawn in zip(frames, trace.frames, strict=True):
        assert shown.shape == drawn.shape
        assert np.abs(shown.astype(int) - drawn).mean() < 10


def test_black_pictures_are_noticed(tmp_path: Path) -> None:
    """Some envs draw nothing without the display they want; one light pixel is a picture."""
    black = [np.zeros((64, 64, 3), np.uint8)] * 3
    lit = black[0].copy()
    lit[5, 5, 1] = 1
    for frames, expected in ((black, True), ([*black, lit], False)):
        with VideoWriter(tmp_path / "x.mp4") as film:
            film.begin(10)
            for number, frame in enumerate(frames):
                film.add(frame, number)
        assert film.black == expected


def test_pictures_are_not_kept(tmp_path: Path) -> None:
    """However long the video: a picture is gone once it is encoded."""
    drawn: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []

    def pictures() -> Iterator[np.ndarray]:
        for i in range(60):
            picture = np.full((256, 256, 3), 4 * i, np.uint8)
            drawn.append(weakref.ref(picture))
            yield picture
            alive.append(sum(found() is not None for found in drawn))

    for suffix in FORMATS:
        encode(tmp_path / f"long{suffix}", pictures(), 50)
    assert max(alive) <= 2


@pytest.mark.parametrize(
    ("env", "what"),
    [
        ({"id": "Walk-v0"}, "does not take render_mode"),
        ({"id": "Pictures-v0", "kwargs": {"blank": True}}, "gives no frames"),
        ({"id": "Pictures-v0", "kwargs": {"size": (8, 8, 2)}}, r"uint8 \(8, 8, 2, 3\)"),
        ({"id": "Pictures-v0", "kwargs": {"grows": True}}, "changed the size of its pictures"),
    ],
)
def test_an_env_that_cannot_render_is_one_clear_error(env: dict[str, Any], what: str, tmp_path: Path) -> None:
    """It names what is wrong; no file is left."""
    with pytest.raises(GymnastError, match=what) as caught, VideoWriter(tmp_path / "x.mp4") as film:
        filmed(env, film)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["file/x.mp4", "file/deeper/x.mp4", "/proc/x.mp4", "folder.mp4"])
def test_unwritable_path(where: str, tmp_path: Path) -> None:
    """One sentence that names the path; nothing is left behind."""
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder.mp4").mkdir()
    path = tmp_path / where
    with pytest.raises(GymnastError, match="Cannot write the video") as caught:
        encode(path, ramp(3, 64, 64), 10)
    assert str(path) in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.mp4"]


def test_an_interrupted_video_leaves_no_file(tmp_path: Path) -> None:
    """The file appears only when it is whole; an old one stays as it was."""

    def broken() -> Iterator[np.ndarray]:
        yield from ramp(5, 64, 64)
        raise KeyboardInterrupt

    path = tmp_path / "x.mp4"
    with pytest.raises(KeyboardInterrupt):
        encode(path, broken(), 10)
    assert not list(tmp_path.iterdir())
    encode(path, ramp(3, 64, 64), 10)
    with pytest.raises(KeyboardInterrupt):
        encode(path, broken(), 10)
    assert len(decode(path)[0]) == 3
