"""News over a WebSocket: the list of runs, and curves of runs that train.

A page says what it shows, `{"runs": true}` or `{"curves": {"runs": [...], "metrics": [...], "axis": "vec_steps"}}`; each
replaces what it said before, and null ends it. Files are looked at about once a second, in a thread, and only what changed
is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
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
MOST_CURVE_RUNS = 100
POINTS = 1200
Look = Callable[[], Any]


class Live:
    """One endpoint for all news."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def endpoint(self, socket: WebSocket) -> None:
        """Serve one page until it leaves."""
        await socket.accept()
        looks: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                for topic, wanted in _wishes(await socket.receive_text()).items():
                    _end(looks.pop(topic, None))
                    if wanted:
                        looks[topic] = asyncio.create_task(self._tell(socket, topic, wanted))
        except (WebSocketDisconnect, RuntimeError):  # the latter: it left while something was sent
            pass
        finally:
            for task in looks.values():
                _end(task)

    async def _tell(self, socket: WebSocket, topic: str, wanted: Any) -> None:
        """Look again and again, and send what is new."""
        try:
            look = await run_in_threadpool(self._look, topic, wanted)
            while True:
                news = await run_in_threadpool(look)
                if news is not None:
                    await _send(socket, {topic: news})
                await asyncio.sleep(EVERY)
        except GymnastError as error:
            await _send(socket, {"error": str(error), "topic": topic})
        except (WebSocketDisconnect, RuntimeError):
            return

    def _look(self, topic: str, wanted: Any) -> Look:
        if topic == "runs":
            return Feed(self._root).news
        return _curves(self._root, wanted if isinstance(wanted, dict) else {})


def _curves(root: Path, wanted: dict[str, Any]) -> Look:
    """Points of curves that are new; `complete` ones replace what was known."""
    runs = find_runs(_texts(wanted.get("runs"))[:MOST_CURVE_RUNS], root, paths=False)
    metrics, axis = _texts(wanted.get("metrics")), str(wanted.get("axis") or DEFAULT_AXIS)
    readers = [LiveMetrics(run, metrics, axis=axis, points=POINTS) for run in runs]

    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = []
        for reader in readers:
            news = reader.news()
            for one in news.series:
                if news.complete or len(one.x) or len(one.nonfinite):
                    found.append({**plain(one), "complete": news.complete, "after": news.after})
        return found or None

    return look


def _wishes(text: str) -> dict[str, Any]:
    try:
        wishes = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(wishes, dict):
        return {}
    return {topic: wishes[topic] for topic in ("runs", "curves") if topic in wishes}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()


async def _send(socket: WebSocket, message: dict[str, Any]) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_text(json.dumps(plain(message), allow_nan=False, separators=(",", ":")))
