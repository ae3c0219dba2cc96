"""gymnast: train, watch, explain, compare and share reinforcement-learning agents on Gymnasium environments."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gymnast.api import (
        Agent,
        Callback,
        Run,
        compare,
        evaluate,
        load,
        plot,
        resume,
        runs,
        train,
    )

__all__ = [
    "Agent",
    "Callback",
    "Run",
    "__version__",
    "compare",
    "evaluate",
    "load",
    "plot",
    "resume",
    "runs",
    "train",
]


def __getattr__(name: str) -> Any:
    """The Python API, imported when first used so that `gymnast --help` stays instant."""
    if name in __all__:
        return getattr(importlib.import_module("gymnast.api"), name)
    raise AttributeError(f"module 'gymnast' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
