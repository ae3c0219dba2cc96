"""One trainer per run: a lock that the system releases when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path

from gymnast.errors import UsageError
from gymnast.runs.files import flock, now
from gymnast.runs.reading import parse_json


class RunLock:
    """Held while a process trains in a run; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        path, name = folder / "lock", folder.name
        try:
            # Not inherited by env workers (they start through exec), so an orphan worker cannot hold it.
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"Cannot lock run {name}: {error.strerror} ('{path}').") from error
        try:
            flock(self._descriptor, alone=True, wait=False)
        except BlockingIOError:
            holder = os.read(self._descriptor, 4096)
            os.close(self._descriptor)
            raise UsageError(_held(name, holder)) from None
        except OSError as error:  # a network folder without locks
            os.close(self._descriptor)
            raise UsageError(
                f"Cannot lock run {name}: {error.strerror} ('{path}'). "
                "Choose a folder on a local disk with --runs-dir or GYMNAST_HOME."
            ) from error
        who = json.dumps({"pid": os.getpid(), "host": platform.node(), "since": now()})
        with contextlib.suppress(OSError):  # a full disk: still locked, only without a name
            os.truncate(self._descriptor, 0)
            os.write(self._descriptor, who.encode())

    def release(self) -> None:
        """Give the run free; harmless when repeated. The file stays: deleting it would race with the next holder."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _held(name: str, raw: bytes) -> str:
    try:
        holder = parse_json(raw)
        who = f"process {holder['pid']} on {holder['host']} since {holder['since']}"
        stop = f"kill {holder['pid']}"
    except (ValueError, KeyError, TypeError):  # taken a moment ago, name not written yet
        who, stop = "another process", "Ctrl-C there"
    return f"Run {name} is being trained by {who}. Wait for it or stop it ({stop}), then try again."
