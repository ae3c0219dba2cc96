"""A call from Python leaves its process as it was: threads, kernels, environment.

Signal handlers are put back by whoever sets them (`training.keeping.signals`), the random generators of Python, numpy and
torch are never drawn from, and what only helps a process of ours, such as a setting of the allocator, is left to the command
line.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

ENVIRONMENT = ("CUBLAS_WORKSPACE_CONFIG", "MUJOCO_GL", "SDL_VIDEODRIVER", "PYTHONSAFEPATH")
"""Variables that may be set while we work."""


@dataclass(frozen=True)
class _Before:
    """What the process had before the first of the calls that are under way."""

    threads: int
    environment: dict[str, str | None]
    deterministic: bool
    warn_only: bool
    benchmark: bool
    convolutions_tf32: bool
    products_tf32: bool
    pictures: int | None
    """Threads of OpenCV; None while it is not imported."""


_lock = threading.Lock()
_under_way = 0
_before: _Before | None = None


@contextmanager
def left_as_it_was() -> Iterator[None]:
    """Put back what a training or an evaluation sets; calls in several threads share one record."""
    global _under_way, _before  # noqa: PLW0603 - what is recorded is the process's
    with _lock:
        if _under_way == 0:
            _before = _record()
        before = _before
        assert before is not None
        _under_way += 1
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            torch.set_num_threads(before.threads)  # of this thread, whatever others do
            if _under_way == 0:
                _put_back(before)


def _record() -> _Before:
    return _Before(
        threads=torch.get_num_threads(),
        environment={name: os.environ.get(name) for name in ENVIRONMENT},
        deterministic=torch.are_deterministic_algorithms_enabled(),
        warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
        benchmark=torch.backends.cudnn.benchmark,
        convolutions_tf32=torch.backends.cudnn.allow_tf32,
        products_tf32=torch.backends.cuda.matmul.allow_tf32,
        pictures=None if (cv2 := _opencv()) is None else cv2.getNumThreads(),
    )


def _put_back(before: _Before) -> None:
    for name, value in before.environment.items():
        if value is None:
            os.environ.pop(name, None)
        elif os.environ.get(name) != value:
            os.environ[name] = value
    if before.deterministic != torch.are_deterministic_algorithms_enabled():  # setting it takes a second
        torch.use_deterministic_algorithms(before.deterministic, warn_only=before.warn_only)
    torch.backends.cudnn.benchmark = before.benchmark
    torch.backends.cudnn.allow_tf32 = before.convolutions_tf32
    torch.backends.cuda.matmul.allow_tf32 = before.products_tf32
    if before.pictures is not None and (cv2 := _opencv()) is not None:
        cv2.setNumThreads(before.pictures)


def _opencv() -> Any:
    return sys.modules.get("cv2")
