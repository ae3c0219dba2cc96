"""The process that sends while a run trains: `python -m gymnast.service.tracking.sender FOLDER TRACKER`.

It follows the run's folder until its standard input ends, which the system does however the training ended. It says on its
standard output, in lines of JSON, what the training should tell its user.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
from pathlib import Path

from gymnast.errors import GymnastError
from gymnast.metrics.trackers.base import TrackerError
from gymnast.runs.store import Run
from gymnast.service.tracking.sending import Sending, in_words, only_one

LOOK_EVERY = 0.5
"""Seconds between two looks into the folder."""
LAST_SECONDS = 75.0
"""So long after the end of the training the process ends itself, whatever a client still waits for."""


class Words:
    """Standard output, for messages only: whatever clients print goes to the log."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)

    def __call__(self, kind: str, text: str = "") -> None:
        """Report it, unless the reader is gone."""
        with contextlib.suppress(OSError):
            os.write(self._out, json.dumps({"kind": kind, "text": text}).encode() + b"\n")


def main(folder: str, name: str) -> int:
    """Follow the run; 0 where everything was sent."""
    say = Words()
    run = Run(Path(folder))
    try:
        with only_one(run, name):
            sent = _follow(Sending(run, name, pid=os.getppid()), say)
    except GymnastError as error:
        say("trouble", in_words(error))
        return 1
    if sent:
        say("done")
    return 0 if sent else 1


def _follow(sending: Sending, say: Words) -> bool:
    """Send until the training has ended; whether everything was."""
    introduced = False
    while not _ended(LOOK_EVERY):
        try:
            sending.advance()
        except TrackerError as error:
            print(in_words(error), file=sys.stderr, flush=True)
            say("trouble", in_words(error))
        if sending.connected and not introduced:
            introduced = True
            say("connected")
            if sending.url:
                say("url", sending.url)
    watchdog = threading.Timer(LAST_SECONDS, os._exit, (1,))
    watchdog.daemon = True
    watchdog.start()
    try:
        sending.finish()
    except TrackerError as error:
        print(in_words(error), file=sys.stderr, flush=True)
        say("trouble", in_words(error))
        return False
    return not sending.refused


def _ended(seconds: float) -> bool:
    """Wait so long for the end of standard input; nothing is ever written to it."""
    ready, _, _ = select.select([0], [], [], seconds)
    return bool(ready) and os.read(0, 1) == b""


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # threads of a client that cannot reach its server must not hold the process
