"""How MuJoCo draws on a machine without a display: chosen before it is imported."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}
NO_RENDERER = (
    "MuJoCo needs a display or a library that draws without one: on Debian or Ubuntu, apt-get install libegl1 "
    "libegl-mesa0 (MUJOCO_GL=egl) or libosmesa6 (MUJOCO_GL=osmesa)."
)


def choose_renderer() -> str:
    """How it draws, empty when it cannot. Without a display MuJoCo must be told of it before it is imported."""
    if sys.platform != "linux" or any(name in os.environ for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")):
        return os.environ.get("MUJOCO_GL", "display")
    name = _found()
    if name:
        os.environ["MUJOCO_GL"] = name
    return name


@functools.cache
def _found() -> str:
    """The library that is installed; empty without one."""
    for name, library in LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return name
    return ""
