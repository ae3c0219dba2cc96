"""Episodes as MP4, streamed frame by frame through PyAV; a JSON beside each video says what it shows (STO-4)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gymnast.config.schema import RunConfig
from gymnast.errors import EnvError, GymnastError
from gymnast.evaluation.trace import EpisodeTrace

MIN_SIDE = 256
"""Small frames (toy text, MinAtar) are enlarged by whole factors, so that players do not blur them."""


def encode(path: Path, frames: Iterable[np.ndarray], fps: int) -> int:
    """Write RGB frames [H, W, 3] uint8 as H.264; returns how many. The file appears only when it is whole."""
    import av

    temporary = path.with_name(f".{path.name}.part")
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(temporary), "w", format="mp4", options={"movflags": "faststart"}) as container:
            stream = None
            for frame in frames:
                image = _even(_enlarged(frame))
                if stream is None:
                    # yuv420p plays everywhere (browsers, QuickTime, the Hub's preview).
                    stream = container.add_stream("libx264", rate=fps, options={"crf": "20", "preset": "veryfast"})
                    stream.height, stream.width, stream.pix_fmt = image.shape[0], image.shape[1], "yuv420p"
                for packet in stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")):
                    container.mux(packet)
                count += 1
            if stream is not None:
                for packet in stream.encode():
                    container.mux(packet)
        if count:
            temporary.replace(path)
    except OSError as error:
        raise GymnastError(f"Cannot write the video {path}: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):  # gone already, or its folder never came to be
            temporary.unlink()
    return count


def write_video(path: Path, traces: Sequence[EpisodeTrace], config: RunConfig, *, checkpoint: str, run_id: str) -> None:
    """Episodes one after the other, with a JSON beside the file."""
    if not any(trace.frames for trace in traces):
        raise EnvError(f"{config.env.id} gave no frames: it cannot render as rgb_array.")
    encode(path, (frame for trace in traces for frame in trace.frames), traces[0].fps)
    about = {
        "run": run_id,
        "checkpoint": checkpoint,
        "config": config.name,
        "episodes": [{"seed": trace.seed, "return": trace.ret, "length": len(trace)} for trace in traces],
    }
    path.with_suffix(".json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _enlarged(frame: np.ndarray) -> np.ndarray:
    factor = -(-MIN_SIDE // max(frame.shape[:2])) if max(frame.shape[:2]) < MIN_SIDE else 1
    return np.kron(frame, np.ones((factor, factor, 1), np.uint8)) if factor > 1 else frame


def _even(frame: np.ndarray) -> np.ndarray:
    """H.264 with 4:2:0 chroma needs even sides."""
    height, width = frame.shape[:2]
    return np.ascontiguousarray(frame[: height - height % 2, : width - width % 2])
