"""What a command does to its own process: leave on Ctrl-C, collect no garbage while it imports, set what torch reads."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from gymnast.config.load import Resolved

SPINS = "20000"
"""How long a thread of torch looks for work: across the gaps within an update, and not through a step of the envs."""


@contextmanager
def leaving_at_once(unfinished: Path | None = None) -> Iterator[None]:
    """End the process on the spot at Ctrl-C, while there is nothing to lose: packages are imported, an episode is played.

    An exception would be swallowed when it strikes inside a callback or destructor of some package, and the command go on.
    An `unfinished` file is removed.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar may have hidden it
        os.write(2, show_cursor + b"\nstopped at once\n")
        os._exit(130)

    # SIGTERM too: SDL, which draws most envs, handles it unless another handler is set, and then nothing ends.
    old = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@contextmanager
def own_stdout() -> Iterator[BinaryIO]:
    """Stdout for messages alone: whatever else prints, an env's own code for instance, prints to stderr."""
    sys.stdout.flush()
    ours = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with ours:
        yield ours


def importing() -> None:
    """Collect no garbage until `imported`: imports make a hundred thousand objects and no garbage.

    Collecting meanwhile costs a tenth of the start-up.
    """
    gc.disable()


def imported() -> None:
    """Collect garbage again; what the imports made stays for good and need not be looked at."""
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # else what the frozen ones hold outlives ALE's extension, which complains of leaks


def let_idle_threads_sleep(resolved: Resolved) -> None:
    """Keep torch's threads from spinning on the cores that env workers need; read once, when torch is imported."""
    if resolved.config.env.vectorization == "workers" and not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS
