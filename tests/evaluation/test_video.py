"""Videos: whole files that play everywhere, with a JSON beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from test_trace import record

from gymnast.config.load import validate
from gymnast.config.schema import RunConfig
from gymnast.errors import GymnastError
from gymnast.evaluation.video import MIN_SIDE, encode, write_video


def decode(path: Path) -> tuple[list[np.ndarray], Any]:
    """All frames and the stream's facts."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        facts = {"codec": stream.codec_context.name, "format": stream.pix_fmt, "rate": float(stream.average_rate)}
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)], facts


def config(env_id: str = "Pictures-v0", **env: Any) -> RunConfig:
    """The config a trace was made under."""
    return validate(
        {"name": "test", "env": {"id": env_id, **env}, "algo": {"id": "ppo"}, "train": {"env_steps": 1}}, {}
    )


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
    assert facts == {"codec": "h264", "format": "yuv420p", "rate": 15.0}
    height, width, _ = frames[0].shape
    assert height % 2 == width % 2 == 0
    factor = 1 if max(size) >= MIN_SIDE else -(-MIN_SIDE // max(size))
    assert (height, width) == tuple(side * factor - side * factor % 2 for side in size)
    brightness = [frame.mean() for frame in frames]
    np.testing.assert_allclose(brightness, 10 * np.arange(20), atol=4)
    assert [entry.name for entry in path.parent.iterdir()] == ["ramp.mp4"]


def test_episodes_of_a_run(tmp_path: Path) -> None:
    """As many frames as steps (or one more each), and a JSON that says what they show."""
    traces = [record({"id": "Pictures-v0", "kwargs": {"length": n}}, seed=n, frames=True)[0] for n in (4, 9)]
    path = tmp_path / "episode.mp4"
    write_video(path, traces, config(), checkpoint="step=64", run_id="abcde")
    frames, facts = decode(path)
    assert 0 <= len(frames) - (4 + 9) <= len(traces)
    assert facts["rate"] == 12.0
    about = json.loads((tmp_path / "episode.json").read_text())
    assert (about["run"], about["checkpoint"], about["config"]) == ("abcde", "step=64", "test")
    assert about["episodes"] == [{"seed": n, "return": float(n), "length": n} for n in (4, 9)]


def test_real_env(tmp_path: Path) -> None:
    """CartPole's own pictures survive."""
    trace, _ = record({"id": "CartPole-v1"}, frames=True)
    path = tmp_path / "cartpole.mp4"
    write_video(path, [trace], config("CartPole-v1"), checkpoint="step=1", run_id="abcde")
    frames, _ = decode(path)
    assert 0 <= len(frames) - len(trace) <= 1
    assert frames[0].shape == trace.frames[0].shape
    assert np.abs(frames[0].astype(int) - trace.frames[0]).mean() < 10


@pytest.mark.parametrize(
    "env",
    [{"id": "Walk-v0"}, {"id": "Pictures-v0", "kwargs": {"blank": True}}],
    ids=["no render mode", "renders nothing"],
)
def test_an_env_that_cannot_render_is_one_clear_error(env: dict[str, Any], tmp_path: Path) -> None:
    """It names the env and that it cannot render; no file is left."""
    with pytest.raises(GymnastError, match=env["id"] + ".*render") as caught:
        trace, _ = record(env, frames=True)
        write_video(tmp_path / "x.mp4", [trace], config(env["id"]), checkpoint="step=1", run_id="abcde")
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
