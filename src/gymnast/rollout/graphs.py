"""Capturing CUDA graphs."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

WARM_UPS = 2
"""Calls before a capture, in which libraries choose kernels and take their workspaces."""


def captured(function: Callable[[], None], role: str) -> torch.cuda.CUDAGraph:
    """The kernels of a function as one graph; it is called a few times first.

    Graphs of different roles may run at the same time. cuBLAS has one workspace per stream, and a graph keeps that of the
    stream it was captured on: roles that shared it would write into each other's products.
    """
    stream = _stream(role)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with _nothing_freed(), torch.cuda.graph(graph, stream=stream):
        function()
    return graph


@functools.cache
def _stream(role: str) -> torch.cuda.Stream:
    return torch.cuda.Stream()


@contextmanager
def _nothing_freed() -> Iterator[None]:
    """No garbage is collected meanwhile: graphs and events of a run before would be freed, which aborts a capture."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
