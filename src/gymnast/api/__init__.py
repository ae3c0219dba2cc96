"""The Python API (RUN-13): what the command line does, as functions with the same names.

Names are imported when they are first used: `import gymnast` imports neither torch nor Gymnasium.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnast.api.agent import Agent as Agent
    from gymnast.api.evaluating import evaluate as evaluate
    from gymnast.api.loading import load as load
    from gymnast.api.plots import Plot as Plot
    from gymnast.api.plots import plot as plot
    from gymnast.api.run import Comparison as Comparison
    from gymnast.api.run import Run as Run
    from gymnast.api.run import compare as compare
    from gymnast.api.run import run as run
    from gymnast.api.run import runs as runs
    from gymnast.api.seeds import SeedsResult as SeedsResult
    from gymnast.api.seeds import train_seeds as train_seeds
    from gymnast.api.training import resume as resume
    from gymnast.api.training import train as train
    from gymnast.training.keeping.callbacks import Callback as Callback
    from gymnast.training.keeping.callbacks import Evaluated as Evaluated
    from gymnast.training.keeping.result import TrainResult as TrainResult

WHERE = {
    "Agent": "gymnast.api.agent",
    "Callback": "gymnast.training.keeping.callbacks",
    "Comparison": "gymnast.api.run",
    "Evaluated": "gymnast.training.keeping.callbacks",
    "Plot": "gymnast.api.plots",
    "Run": "gymnast.api.run",
    "SeedsResult": "gymnast.api.seeds",
    "TrainResult": "gymnast.training.keeping.result",
    "compare": "gymnast.api.run",
    "evaluate": "gymnast.api.evaluating",
    "load": "gymnast.api.loading",
    "plot": "gymnast.api.plots",
    "resume": "gymnast.api.training",
    "run": "gymnast.api.run",
    "runs": "gymnast.api.run",
    "train": "gymnast.api.training",
    "train_seeds": "gymnast.api.seeds",
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'gymnast.api' has no attribute '{name}'")
    found = getattr(importlib.import_module(WHERE[name]), name)
    globals()[name] = found  # also in place of the module `gymnast.api.run`
    return found
