"""News over a WebSocket: the list of runs, and curves of runs that train.

A page says what it shows, `{"runs": true}` or `{"curves": {"runs": [...], "metrics": [...], "axis": "vec_steps"}}`; each
replaces what it said before, and null ends it. Files are looked at about once a second, in a thread, and only what changed
is sent. `{"window": [low, high]}` asks once for the points of the curves between two places, which a zoom shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from gymnast.errors import GymnastError
from gymnast.service.metrics import DEFAULT_AXIS, LiveMetrics
from gymnast.service.plain import plain
from gymnast.service.runs import find_runs
from gymnast.studio.feed import Feed

EVERY = 0.8
"""Seconds between two looks."""
PATIENCE = 30.0
"""Seconds that a zoom waits for the curve it belongs to."""
MOST_CURVE_RUNS = 100
POINTS = 1200
TOPICS = ("runs", "curves", "window")
"""In the order in which a message with several of them is taken: a window is one of the curves before it."""
Look = Callable[[], Any]


class Live:
    """One endpoint for all news."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def endpoint(self, socket: WebSocket) -> None:
        """Serve one page until it leaves."""
        await socket.accept()
        page = _Page(self._root, socket)
        try:
            while True:
                for topic, wanted in _wishes(await socket.receive_text()).items():
                    page.wish(topic, wanted)
        except (WebSocketDisconnect, RuntimeError):  # the latter: it left while something was sent
            pass
        finally:
            page.leave()


class _Page:
    """What one page wants to hear."""

    def __init__(self, root: Path, socket: WebSocket) -> None:
        self._root, self._socket = root, socket
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._curves: Curves | None = None

    def wish(self, topic: str, wanted: Any) -> None:
        """Hear about a topic from now on, and no more of what was asked for before."""
        self._end(topic)
        if topic == "curves":
            self._end("window")
            self._curves = None
        if topic == "window":
            self._look_into(wanted)
        elif topic == "runs" and wanted:
            self._start(topic, Feed(self._root).news)
        elif wanted and isinstance(wanted, dict):
            self._curves = Curves(self._root, wanted)
            self._start(topic, self._curves.news)

    def _look_into(self, window: Any) -> None:
        curves, places = self._curves, _places(window)
        if curves is not None and places is not None:
            self._tasks["window"] = asyncio.create_task(self._tell_once("window", lambda: curves.within(*places)))

    def _start(self, topic: str, look: Look) -> None:
        self._tasks[topic] = asyncio.create_task(self._tell(topic, look))

    def _end(self, topic: str) -> None:
        task = self._tasks.pop(topic, None)
        if task is not None:
            task.cancel()

    def leave(self) -> None:
        """The reader is gone."""
        for topic in list(self._tasks):
            self._end(topic)

    async def _tell(self, topic: str, look: Look) -> None:
        """Look again and again, and send what is new."""
        while await self._tell_once(topic, look):
            await asyncio.sleep(EVERY)

    async def _tell_once(self, topic: str, look: Look) -> bool:
        """Look, and send what is new; whether there is sense in looking again."""
        try:
            news = await run_in_threadpool(look)
            if news is not None:
                await _send(self._socket, {topic: news})
        except GymnastError as error:
            await _send(self._socket, {"error": str(error), "topic": topic})
            return False
        except (WebSocketDisconnect, RuntimeError):
            return False
        return True


class Curves:
    """Curves of some runs, kept in memory as long as a page shows them."""

    def __init__(self, root: Path, wanted: dict[str, Any]) -> None:
        self._root, self._wanted = root, wanted
        self._readers: list[LiveMetrics] | None = None
        self._lock = threading.Lock()
        """A zoom may come while the file is read …"""
        self._told = threading.Event()
        """… or before, and then waits: what a reader gives first must be everything."""

    def news(self) -> list[dict[str, Any]] | None:
        """Points that are new; `complete` ones replace what was known."""
        found: list[dict[str, Any]] = []
        with self._lock:
            for reader in self._opened():
                news = reader.news()
                for one in news.series:
                    if news.complete or len(one.x) or len(one.nonfinite):
                        found.append({**plain(one), "complete": news.complete, "after": news.after})
        self._told.set()
        return found or None

    def within(self, low: float, high: float) -> dict[str, Any]:
        """All points between two places, as many as a screen can show."""
        self._told.wait(PATIENCE)
        with self._lock:
            series = [plain(one) for reader in self._opened() for one in reader.within(low, high)]
        return {"low": low, "high": high, "series": series}

    def _opened(self) -> list[LiveMetrics]:
        if self._readers is None:
            wanted = self._wanted
            runs = find_runs(_texts(wanted.get("runs"))[:MOST_CURVE_RUNS], self._root, paths=False)
            metrics, axis = _texts(wanted.get("metrics")), str(wanted.get("axis") or DEFAULT_AXIS)
            self._readers = [LiveMetrics(run, metrics, axis=axis, points=POINTS) for run in runs]
        return self._readers


def _wishes(text: str) -> dict[str, Any]:
    try:
        wishes = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(wishes, dict):
        return {}
    return {topic: wishes[topic] for topic in TOPICS if topic in wishes}


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for text in value if isinstance(text, str)]
    return []


def _places(window: Any) -> tuple[float, float] | None:
    """Two places on the axis, the lower one first."""
    if not isinstance(window, list) or len(window) != 2:
        return None
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) and math.isfinite(one) for one in window):
        return None
    return float(window[0]), float(window[1])


async def _send(socket: WebSocket, message: dict[str, Any]) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_text(json.dumps(plain(message), allow_nan=False, separators=(",", ":")))
