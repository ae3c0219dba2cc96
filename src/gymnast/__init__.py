"""gymnast: train, watch, explain, compare and share reinforcement-learning agents on Gymnasium environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gymnast.api import Agent, load, train

__all__ = ["Agent", "__version__", "load", "train"]


def __getattr__(name: str) -> Any:
    """The Python API, imported when first used so that `gymnast --help` stays instant."""
    if name in ("train", "load", "Agent"):
        from gymnast import api

        return getattr(api, name)
    raise AttributeError(f"module 'gymnast' has no attribute '{name}'")
