"""A studio in a process of its own."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch import COMMAND, environment

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Studio:
    """A running studio."""

    address: str
    """`http://127.0.0.1:PORT`."""
    token: str | None
    root: Path
    process: subprocess.Popen[str]

    def request(
        self, path: str, body: Any = None, *, method: str | None = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or text) and headers; headers are given as `Host="evil"`, `Sec_Fetch_Site="cross-site"`."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.address + path, data=data, method=method)
        for name, value in headers.items():
            asked.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(asked, timeout=60) as response:
                return response.status, _content(response.read()), dict(response.headers)
        except urllib.error.HTTPError as error:
            return error.code, _content(error.read()), dict(error.headers)

    def get(self, path: str) -> Any:
        """The JSON of an address that must answer."""
        status, found, _ = self.request(path)
        assert status == 200, found
        return found

    def end(self) -> str:
        """Ctrl-C; gives what it still said."""
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=20)
        return out


def _content(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def start_studio(root: Path, *arguments: str, **changes: str | None) -> Studio:
    """`gymnast studio` on a free port."""
    command = [COMMAND, "studio", "--no-browser", "--port", "0", "--runs-dir", str(root), *arguments]
    process = subprocess.Popen(
        command,
        cwd=root.parent,
        env=environment(**changes),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if found := re.search(r"(http://\S+?)/(?:\?token=(\S+))?\s*$", line):
            return Studio(found[1], found[2], root, process)
    raise AssertionError(f"the studio did not start: {said}")


def python(*arguments: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, *arguments], env=environment(), check=True, capture_output=True, text=True
    ).stdout
