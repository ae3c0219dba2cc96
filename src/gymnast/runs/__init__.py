"""The store of runs. Called, it lists them: `gymnast.runs(env="CartPole-v1")` is `gymnast.api.run.runs`.

The package and the function of the Python API share a name, so the package is callable; nothing in it needs that.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class _Callable(types.ModuleType):
    def __call__(self, **filters: Any) -> Any:
        return importlib.import_module("gymnast.api.run").runs(**filters)


sys.modules[__name__].__class__ = _Callable
