"""Episodes as MP4, WebM or GIF, streamed frame by frame through PyAV; a JSON next to each video says what it shows (STO-4)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gymnast.errors import GymnastError
from gymnast.evaluation.film import Caption, enlarged
from gymnast.evaluation.formats import Format, format_of
from gymnast.later import Later

if TYPE_CHECKING:
    import av
    import av.filter as filters
    from av import VideoFrame
    from av.container import OutputContainer
else:
    av, filters = Later("av"), Later("av.filter")

MIN_SIDE = 256
"""Small frames (toy text, MinAtar) are enlarged by whole factors, so that players do not blur them."""
GIF_TICK = Fraction(1, 100)
"""GIF counts in hundredths of a second."""
GIF_FASTEST = 2
"""Ticks per frame at the least: viewers take a shorter time for a tenth of a second."""


class VideoWriter:
    """Takes the pictures of episodes one after the other and keeps none. The file appears only when it is whole.

    A picture is shown until the next one is due: under frame skip for as long as the game took.
    """

    def __init__(self, path: Path, *, quick: bool = False) -> None:
        """`quick` encodes in half the time, into a somewhat larger file."""
        self.format, self.path = format_of(path), path
        if quick:
            self.format = replace(self.format, options={**self.format.options, **self.format.quick})
        self.temporary = path.with_name(f".{path.name}.part")
        self._fps = 0.0
        self._began = self._latest = Fraction(0)
        self._encoder: _Encoder | None = None
        self._container: OutputContainer | None = None
        self.count = 0
        self.black = True
        """Whether no picture so far has a single light pixel."""

    def __enter__(self) -> VideoWriter:
        with self._named_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            self._container = av.open(
                str(self.temporary), "w", format=self.format.container, options=self.format.container_options
            )
        return self

    def begin(self, fps: float) -> None:
        """A new episode follows what there is; the game has `fps` frames per second."""
        self._began = self._latest + (Fraction(1) / Fraction(self._fps) if self.count else 0)
        self._fps = fps

    def wants(self, frame: int) -> bool:
        """A film has every frame that the game shows."""
        return True

    def add(self, picture: np.ndarray, frame: int, caption: Caption | None = None) -> None:
        """RGB [H, W, 3] uint8, and which frame of the episode's game it shows; `Captioned` writes the caption."""
        assert self._container is not None
        self.black = self.black and not picture.any()
        image = _even(enlarged(picture, MIN_SIDE))
        self._latest = self._began + frame / Fraction(self._fps).limit_denominator(1000)
        with self._named_errors():
            if self._encoder is None:
                self._encoder = _Encoder(self._container, self.format, image, self._fps)
            self._encoder.add(image, self._latest)
        self.count += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            with self._named_errors():
                if self._encoder is not None and error is None:
                    self._encoder.finish()
                if self._container is not None:
                    self._container.close()
                if self.count and error is None:
                    self.temporary.replace(self.path)
        finally:
            with contextlib.suppress(OSError):  # gone already, or its folder never came to be
                self.temporary.unlink()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise GymnastError(f"Cannot write the video {self.path}: {error.strerror or error}.") from None


class _Encoder:
    """The one stream of a container, set up for the first picture."""

    def __init__(self, container: OutputContainer, kind: Format, image: np.ndarray, fps: float) -> None:
        rate = Fraction(fps).limit_denominator(1000)
        height, width, _ = image.shape
        self._shape = image.shape
        self._container = container
        stream: Any = container.add_stream(kind.codec, rate=rate, options=dict(kind.options))
        stream.height, stream.width, stream.pix_fmt = height, width, kind.pixels
        self._tick = GIF_TICK if kind.codec == "gif" else 1 / rate
        stream.codec_context.time_base = self._tick
        self._stream = stream
        self._least = GIF_FASTEST if kind.codec == "gif" else 1
        self._palette: _Palette | None = None
        if kind.codec == "gif":
            self._palette = _Palette(width, height)
        self._last_tick: int | None = None

    def add(self, image: np.ndarray, seconds: Fraction) -> None:
        """Encode a picture that is due at a time since the beginning."""
        if image.shape != self._shape:
            raise GymnastError(
                f"The env changed the size of its pictures from {_size(self._shape)} to {_size(image.shape)}: "
                "a video has one size."
            )
        frame = av.VideoFrame.from_ndarray(image, format="rgb24")
        tick = round(seconds / self._tick)
        if self._last_tick is not None:
            tick = max(tick, self._last_tick + self._least)
        frame.pts, frame.time_base, self._last_tick = tick, self._tick, tick
        for ready in [frame] if self._palette is None else self._palette.coloured(frame):
            self._encode(ready)

    def finish(self) -> None:
        """Write what the codec still holds."""
        self._encode(None)

    def _encode(self, frame: VideoFrame | None) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)


class _Palette:
    """Gives every picture the 256 colours that suit it best, as GIF needs."""

    def __init__(self, width: int, height: int) -> None:
        graph: Any = filters.Graph()
        source = graph.add_buffer(width=width, height=height, format="rgb24", time_base=GIF_TICK)
        split, sink = graph.add("split"), graph.add("buffersink")
        chosen, used = graph.add("palettegen", "stats_mode=single"), graph.add("paletteuse", "new=1")
        source.link_to(split)
        split.link_to(chosen, 0)
        split.link_to(used, 1, 0)
        chosen.link_to(used, 0, 1)
        used.link_to(sink)
        graph.configure()
        self._graph = graph

    def coloured(self, frame: VideoFrame) -> Iterator[Any]:
        """The picture in its own palette."""
        self._graph.push(frame)
        with contextlib.suppress(av.BlockingIOError):  # it wants the next picture
            while True:
                yield self._graph.pull()


def encode(path: Path, frames: Iterable[np.ndarray], fps: float) -> int:
    """Write RGB frames [H, W, 3] uint8 at an even pace; returns how many."""
    with VideoWriter(path) as video:
        video.begin(fps)
        for number, frame in enumerate(frames):
            video.add(frame, number)
    return video.count


class Filmed(Protocol):
    """An episode of a video."""

    @property
    def seed(self) -> int:
        """What it began from."""

    @property
    def ret(self) -> float:
        """Undiscounted return in the env's own reward."""

    def __len__(self) -> int: ...


def write_about(path: Path, filmed: Sequence[Filmed], about: dict[str, Any]) -> None:
    """The JSON next to a video: which run, which checkpoint, how it was played, which episodes."""
    episodes = [{"seed": episode.seed, "return": episode.ret, "length": len(episode)} for episode in filmed]
    path.with_suffix(".json").write_text(json.dumps({**about, "episodes": episodes}, indent=2) + "\n", encoding="utf-8")


def _even(frame: np.ndarray) -> np.ndarray:
    """4:2:0 chroma needs even sides."""
    height, width = frame.shape[:2]
    return np.ascontiguousarray(frame[: height - height % 2, : width - width % 2])


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]}×{shape[0]}"
