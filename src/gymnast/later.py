"""Packages that are imported when something of them is first used.

Importing torch takes a second, and listing runs needs nothing of it. A module whose functions do need it says so at its top,
where a reader looks for what a module depends on:

    if TYPE_CHECKING:
        import torch
    else:
        torch = Later("torch")
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands for a module by its full name. Nothing is kept here, so what somebody replaces in the module is replaced here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)
