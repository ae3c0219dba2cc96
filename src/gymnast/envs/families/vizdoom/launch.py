"""Runs between ViZDoom and its engine, as a program of its own, and becomes the engine: `launch.py FOLDER ENGINE ARGUMENT…`

The engine ignores SIGTERM, outlives a killed parent, and writes into the current folder. So it works in a folder of its own,
dies with whoever started it, and hears no Ctrl-C, which is for the trainer.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Arrange the process, then be the engine."""
    folder, engine, *arguments = sys.argv[1:]
    os.setpgid(0, 0)
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    os.chdir(folder)
    os.execv(engine, [engine, *arguments])  # noqa: S606 - its first argument tells it where its own files are


if __name__ == "__main__":
    main()
