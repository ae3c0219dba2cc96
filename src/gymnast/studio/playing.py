"""Play in the browser: each page that plays has a process of its own, and this relays between the two.

The page opens a WebSocket and says what to play in its first message; what it says after that goes to the process
(`gymnast play --serve`), whose messages go to the page as they are. Neither is read here: the page says which pictures it
has seen, and the process makes a new one only then. When the page leaves, the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import struct
import sys
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from gymnast.errors import GymnastError, UsageError
from gymnast.service.runs import find_run
from gymnast.studio.processes import overrides_in

MODES = ("human", "random", "policy")
MOST_GAMES = 6
MOST_LETTERS = 2000
"""Of one message from the page."""
MOST_BYTES = 32_000_000
"""Of one message to the page."""
LAST_BYTES = 4000
PATIENCE = 3.0
"""Seconds that a process gets to end by itself."""
MOST_SEED = 2**31 - 1
CHECKPOINT = re.compile(r"[\w=.-]{1,80}", re.ASCII)
SIZES = struct.Struct(">II")
Process = asyncio.subprocess.Process


class Playing:
    """All games that are being played."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._processes: set[Process] = set()

    async def endpoint(self, socket: WebSocket) -> None:
        """Serve one page until it leaves or the game is over."""
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the latter: it left while something was sent
            try:
                wanted = await socket.receive_text()
                arguments = await run_in_threadpool(arguments_of, wanted, self._root)
                if len(self._processes) >= MOST_GAMES:
                    raise UsageError(f"{MOST_GAMES} games are being played in this studio: close one of them.")
                ended = await self._play(socket, arguments)
            except GymnastError as error:
                ended = {"error": str(error)}
            await socket.send_text(json.dumps(ended))
            await socket.close()

    async def _play(self, socket: WebSocket, arguments: list[str]) -> dict[str, Any]:
        """Start the process, relay until one side ends, and say how it went."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gymnast", *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self._processes.add(process)
        said = _Tail()
        relays = [asyncio.create_task(one) for one in (_to_process(socket, process), _to_page(process, socket))]
        listening = asyncio.create_task(said.read(process))
        try:
            done, _ = await asyncio.wait(relays, return_when=asyncio.FIRST_COMPLETED)
            for relay in done:
                relay.result()  # the page has left: that ends this as well
        finally:
            for relay in relays:
                relay.cancel()
            await asyncio.shield(self._end(process))
        await asyncio.wait([listening], timeout=PATIENCE)
        if process.returncode:
            return {"error": said.sentence() or "The game ended without a message."}
        return {"over": True}

    async def _end(self, process: Process) -> None:
        """Let the process end by itself; one that does not is killed, with all that it started."""
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            _kill(process)
            await process.wait()
        finally:
            self._processes.discard(process)

    def close(self) -> None:
        """The studio ends, and every game with it."""
        for process in self._processes:
            _kill(process)


class _Tail:
    """The end of what a process prints to stderr."""

    def __init__(self) -> None:
        self._text = b""

    async def read(self, process: Process) -> None:
        """Until it closes its stderr."""
        assert process.stderr is not None
        while part := await process.stderr.read(LAST_BYTES):
            self._text = (self._text + part)[-LAST_BYTES:]

    def sentence(self) -> str:
        """The error that it ended with, else its last line."""
        lines = self._text.decode("utf-8", errors="replace").strip().splitlines()
        for line in reversed(lines):
            if line.startswith("error: "):
                return line.removeprefix("error: ")
        return lines[-1] if lines else ""


async def _to_process(socket: WebSocket, process: Process) -> None:
    assert process.stdin is not None
    while True:
        text = await socket.receive_text()
        if len(text) <= MOST_LETTERS:
            process.stdin.write(text.replace("\n", " ").encode() + b"\n")
            with contextlib.suppress(ConnectionError):  # it has ended, which the other relay tells
                await process.stdin.drain()


async def _to_page(process: Process, socket: WebSocket) -> None:
    """Every message without its outer length, which a WebSocket keeps itself."""
    assert process.stdout is not None
    while True:
        try:
            whole, text = SIZES.unpack(await process.stdout.readexactly(SIZES.size))
            if whole > MOST_BYTES:
                return
            message = await process.stdout.readexactly(whole)
        except asyncio.IncompleteReadError:
            return
        await socket.send_bytes(text.to_bytes(4, "big") + message)


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def arguments_of(text: str, root: Path) -> list[str]:
    """The command that plays what the page asks for. What it names comes after `--`, so none of it is an option."""
    try:
        wanted = json.loads(text[: 10 * MOST_LETTERS])
    except (ValueError, RecursionError):
        raise UsageError("The first message is not JSON.") from None
    if not isinstance(wanted, dict):
        raise UsageError("The first message is no JSON object.")
    arguments = ["play", "--serve", "--runs-dir", str(root)]
    mode, seed, fps, sampled = (wanted.get(name) for name in ("mode", "seed", "fps", "sampled"))
    if mode is not None:
        if mode not in MODES:
            raise UsageError(f"mode is one of {', '.join(MODES)}.")
        arguments += ["--mode", mode]
    if seed is not None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MOST_SEED:
            raise UsageError(f"seed is a whole number from 0 to {MOST_SEED:,}.")
        arguments += ["--seed", str(seed)]
    if fps is not None:
        if isinstance(fps, bool) or not isinstance(fps, (int, float)) or not 0.1 <= fps <= 1000:
            raise UsageError("fps is a number from 0.1 to 1,000.")
        arguments += ["--fps", str(fps)]
    if wanted.get("run") is None:
        return [*arguments, "--", _config_in(wanted), *overrides_in(wanted)]
    if sampled is not None:
        arguments.append("--stochastic" if sampled else "--deterministic")
    return [*arguments, "--", _checkpoint_in(wanted, root)]


def _config_in(wanted: dict[str, Any]) -> str:
    config = wanted.get("config")
    if not isinstance(config, str) or not config.strip():
        raise UsageError("Say what to play: an env such as CartPole-v1, or a run.")
    config = config.strip()
    if config.startswith("@") or config.endswith(".zip") or Path(config).exists():
        raise UsageError(f"'{config[:80]}' is not an env. A run is played from its own page.")
    if ":" not in config and "-v" not in config:
        raise UsageError(f"'{config[:80]}' is not an env: write it with its version, for example CartPole-v1.")
    return config


def _checkpoint_in(wanted: dict[str, Any], root: Path) -> str:
    run, checkpoint = wanted.get("run"), wanted.get("checkpoint")
    if not isinstance(run, str):
        raise UsageError("run is the id of a run.")
    found = find_run(run, root, paths=False)
    if not checkpoint:
        return found.id
    if not isinstance(checkpoint, str) or CHECKPOINT.fullmatch(checkpoint) is None:
        raise UsageError("checkpoint is the name of a checkpoint of the run.")
    return f"{found.id}/{checkpoint}"
