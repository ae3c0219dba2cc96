"""Play for another process: keys and wishes come in over stdin, moments with their pictures go out over stdout.

In, one JSON object per line: `{"press": "left"}`, `{"release": "left"}` (null: all), `{"command": "pause"}`,
`{"mode": "random"}`, `{"fps": 30}`, `{"record": "cartpole/human"}` (null: stop), `{"seen": 1}`.
Out, one message after the other: its length and the length of its JSON (4 bytes each, big endian), the JSON, a PNG or JPEG.
An env that draws no pictures sends its observation as numbers instead.

A picture is made only when the reader has `seen` the ones before, up to two: a slow reader sees fewer moments, never old
ones. The end of stdin ends the session.
"""

from __future__ import annotations

import json
import math
import queue
import struct
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, BinaryIO

import av
import numpy as np

from gymnast.config.spec import EnvSpec
from gymnast.envs.drawing import why_black
from gymnast.envs.spaces import row as obs_row
from gymnast.errors import GymnastError
from gymnast.evaluation.components import components
from gymnast.play import commands
from gymnast.play.course import Course
from gymnast.play.datasets import DatasetRecorder
from gymnast.play.session import Session

SIZES = struct.Struct(">II")
AHEAD = 2
"""Moments on their way: one is shown while the next one is made."""
LEAST_FPS, MOST_FPS = 0.1, 1000.0
LOSSLESS = 100_000
"""Pixels up to which a picture goes as PNG, which small ones are made into at once and which keeps their edges sharp."""
BLACK_AFTER = 30
"""Pictures after which one that is still all black is remarked upon."""


class Front:
    """Plays a session for the process at the other end."""

    def __init__(self, session: Session, title: str, out: BinaryIO, course: Course, blind: Blind | None = None) -> None:
        """`course` gets the session's steps. `blind` replaces pictures if the env draws none."""
        self._session, self._title, self._out = session, title, out
        self._course, self._blind = course, blind
        self._wishes: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._ahead = 0
        self._recorder: DatasetRecorder | None = None
        self._told: dict[str, Any] = {}
        """The dataset that is being written or was written last, and what went wrong."""
        self._pictures = Pictures()

    def run(self) -> None:
        """Run until the session is over or the other side is gone."""
        session = self._session
        threading.Thread(target=self._listen, args=(sys.stdin.buffer,), daemon=True).start()
        shown: Any = None
        told = 0
        try:
            no_picture = None if self._blind is None else self._blind.reason
            self._send({"game": game_of(session, self._title) | {"no_picture": no_picture}})
            while not session.over:
                self._take(session.idle_for(time.monotonic()))
                session.advance(time.monotonic())
                if self._ahead >= AHEAD:
                    continue
                view, picture = session.view(), self._picture()
                now = (view, id(picture), session.fps, self._told)
                if now == shown:
                    continue
                moment = {"view": asdict(view), "fps": session.fps, **self._told, **self._state()}
                moment["ended"] = [asdict(result) for result in session.results[told:]]
                moment["course"] = self._course.news()
                told = len(session.results)
                new = picture is not None and (shown is None or shown[1] != id(picture))
                shown = now
                self._send(moment, self._pictures.encoded(picture) if new else b"")
                self._ahead += 1
        except BrokenPipeError:
            return
        finally:
            self._stop_recording()

    def _picture(self) -> Any:
        if self._blind is None:
            return self._session.picture()
        return None

    def _state(self) -> dict[str, Any]:
        recorder = self._recorder
        state: dict[str, Any] = {"black": self._pictures.remark}
        if self._blind is not None:
            state["observation"] = list(self._blind.numbers(self._session).items())
        if recorder is not None:
            state["recording"] = {"id": recorder.dataset_id, "episodes": recorder.episodes, "steps": recorder.steps}
        return state

    def _listen(self, stdin: BinaryIO) -> None:
        for line in stdin:
            self._wishes.put(line)
        self._wishes.put(b'{"command": "quit"}')

    def _take(self, patience: float) -> None:
        """All wishes that are there; wait a while for the first one."""
        try:
            self._wish(self._wishes.get(timeout=max(patience, 0.001)))
            while True:
                self._wish(self._wishes.get_nowait())
        except queue.Empty:
            return

    def _wish(self, line: bytes) -> None:
        """Do what a line asks for; what makes no sense is passed over."""
        try:
            wish = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(wish, dict):
            return
        session = self._session
        for what, value in wish.items():
            if what == "press" and value in session.keys:
                session.press(value)
            elif what == "release" and (value is None or isinstance(value, str)):
                session.release(value)
            elif what == "command" and value in commands.MEANING:
                session.command(value)
            elif what == "mode" and isinstance(value, str):
                session.set_mode(value)
            elif what == "fps" and _is_pace(value):
                session.fps = float(value)
            elif what == "seen":
                self._ahead = max(0, self._ahead - 1)
            elif what == "record":
                self._record(value)

    def _record(self, dataset_id: Any) -> None:
        self._stop_recording()
        if not isinstance(dataset_id, str):
            return
        try:
            recorder = DatasetRecorder(dataset_id)
            self._session.record(recorder)
        except GymnastError as error:
            self._told = {"problem": str(error)}
            return
        self._recorder, self._told = recorder, {}

    def _stop_recording(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        self._session.stop_recording(recorder)
        recorder.close()
        self._told = {
            "recorded": {"id": recorder.dataset_id, "episodes": recorder.episodes, "steps": recorder.steps},
        }

    def _send(self, message: Mapping[str, Any], picture: bytes = b"") -> None:
        text = json.dumps(finite(message), allow_nan=False, separators=(",", ":")).encode()
        self._out.write(SIZES.pack(len(text) + len(picture), len(text)) + text + picture)
        self._out.flush()


@dataclass(frozen=True)
class Blind:
    """What is shown of an env that draws no pictures: its observation, number by number."""

    reason: str
    """Why there is no picture."""
    spec: EnvSpec

    def numbers(self, session: Session) -> dict[str, Any]:
        """The numbers by name; of an image there are none."""
        return components(obs_row(session.stage.row.obs, 0), self.spec)


class Pictures:
    """Makes PNG or JPEG of pictures, and notices when they all are black."""

    def __init__(self) -> None:
        self._encoder: Any = None
        self._kind: tuple[Any, ...] = ()
        self._count = 0
        self._black = True

    @property
    def remark(self) -> str:
        """Why there is nothing to see, where the env draws nothing but black."""
        if self._black and self._count > BLACK_AFTER:
            return f"All pictures are black.{why_black()}"
        return ""

    def encoded(self, picture: np.ndarray) -> bytes:
        """RGB [H, W, 3] uint8 as a file."""
        self._count += 1
        self._black = self._black and not picture.any()
        height, width = picture.shape[:2]
        if self._kind != (height, width):
            self._kind = (height, width)
            self._encoder = _encoder(height, width)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        if self._encoder.name == "mjpeg":
            frame = frame.reformat(format="yuv444p", dst_color_range=2)
        frame.pts = self._count
        return b"".join(bytes(packet) for packet in self._encoder.encode(frame))


def _encoder(height: int, width: int) -> Any:
    if height * width <= LOSSLESS:
        encoder: Any = av.CodecContext.create("png", "w")
        encoder.pix_fmt, encoder.options = "rgb24", {"compression_level": "1"}
    else:
        encoder = av.CodecContext.create("mjpeg", "w")
        encoder.pix_fmt, encoder.options = "yuv444p", {"qmin": "3", "qmax": "3"}
        encoder.color_range = 2
    encoder.width, encoder.height = width, height
    encoder.time_base = Fraction(1, 30)
    encoder.thread_count = 1  # threads would keep pictures back
    return encoder


def game_of(session: Session, title: str) -> dict[str, Any]:
    """What does not change during play: who can act, and what the keys do."""
    person = session.person
    meaning, turns = {}, False
    if person is not None:
        meaning, turns = person.keys.meaning(session.labels), person.keys.turns
    return {
        "title": title,
        "env": session.stage.config.id,
        "modes": list(session.players),
        "keys": list(session.keys),
        "meaning": list(meaning.items()),
        "turns": turns,
        "labels": session.labels,
        "commands": {command: commands.keys_of(command, session.keys) for command in commands.MEANING},
    }


def finite(value: Any) -> Any:
    """The same with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return value


def _is_pace(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and LEAST_FPS <= value <= MOST_FPS
