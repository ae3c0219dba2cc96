"""A display of its own (Xvfb), keys pressed on it like a person's (xdotool), and pictures of what is on it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from launch import COMMAND, environment, until

SIZE = (1100, 800)
MISSING = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]


class ClientMessage(ctypes.Structure):
    """An event of X from one program to another."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("rest", ctypes.c_long * 24),
    )


def ask_to_close(display: str, window: int) -> None:
    """Send WM_DELETE_WINDOW, which is what a window manager sends for the cross in the corner."""
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.restype = ctypes.c_ulong
    connection = ctypes.c_void_p(x.XOpenDisplay(display.encode()))
    atom = {name: x.XInternAtom(connection, name, 0) for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW")}
    message = ClientMessage(type=33, window=window, message_type=atom[b"WM_PROTOCOLS"], format=32)
    message.data[0] = atom[b"WM_DELETE_WINDOW"]
    x.XSendEvent(connection, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(message))
    x.XCloseDisplay(connection)


class Desk:
    """One display with one window at most."""

    def __init__(self, display: str, folder: Path) -> None:
        self.display, self.folder = display, folder
        self.log = folder / "said.txt"
        self.process: subprocess.Popen[str] | None = None

    def start(self, *arguments: object) -> None:
        """Start the command here and wait for its window."""
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [COMMAND, *map(str, arguments)],
                cwd=self.folder,
                env=environment(DISPLAY=self.display, SDL_VIDEODRIVER=None, PYTHONUNBUFFERED="1"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        until(lambda: self.process.poll() is not None or self._tool("search", "--onlyvisible", "--class", ".").strip())
        assert self.process.poll() is None, self.said()
        window = self._tool("search", "--onlyvisible", "--class", ".").split()[0]
        self._tool("windowfocus", "--sync", window)

    def _tool(self, *arguments: str) -> str:
        done = subprocess.run(
            ["xdotool", *arguments],
            env={**os.environ, "DISPLAY": self.display},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        """Down and up again, one after the other; what is done with the first is done before the next."""
        for key in keys:
            self._tool("key", "--delay", "60", key)

    def hold(self, key: str) -> None:
        """Down."""
        self._tool("keydown", key)

    def let_go(self, key: str) -> None:
        """Up."""
        self._tool("keyup", key)

    def close_window(self) -> None:
        """As the cross in its corner does: without a window manager nobody else would send this."""
        window = self._tool("search", "--onlyvisible", "--class", ".").split()[0]
        ask_to_close(self.display, int(window))

    def said(self) -> str:
        """What the command has printed."""
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        """Until it has printed this."""
        until(lambda: text in self.said() or self.process.poll() is not None)
        assert text in self.said(), self.said()

    def end(self) -> int:
        """Wait for the end of the command; its exit code."""
        return self.process.wait(60)

    def look(self) -> np.ndarray:
        """A picture of the whole display, RGB [H, W, 3]."""
        options = {"video_size": f"{SIZE[0]}x{SIZE[1]}", "framerate": "30", "draw_mouse": "0"}
        with av.open(self.display, format="x11grab", options=options) as screen:
            return next(screen.decode(video=0)).to_ndarray(format="rgb24")


@contextlib.contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    """A display that nobody else uses; what runs on it ends with it."""
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp", "-noreset"],
        pass_fds=(writing,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as pipe:
            number = pipe.readline().strip()
        assert number, "Xvfb did not start"
        here = Desk(f":{number}", folder)
        try:
            yield here
        finally:
            if here.process is not None and here.process.poll() is None:
                here.process.kill()
                here.process.wait()
    finally:
        server.terminate()
        server.wait()
