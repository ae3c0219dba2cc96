"""The learner of a run as it was at a checkpoint, as far as it looks at episodes."""

from __future__ import annotations

from pathlib import Path

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.base import coefficients
from gymnast.algorithms.credit import Credit
from gymnast.config.plan import make_plan
from gymnast.config.schedule import Clock
from gymnast.config.schema import RunConfig
from gymnast.runs import checkpoint


def credit_at(config: RunConfig, folder: Path) -> Credit:
    """Its reward scale, baseline and coefficients."""
    saved = checkpoint.load(folder)
    algorithm = make_algorithm(config.algo, 1)
    counters, budget = saved.manifest.counters, make_plan(config, n_steps=1).env_steps
    with checkpoint.understood(folder):
        algorithm.load_state(saved.state["session"]["algorithm"])
        clock = Clock(counters["env_steps"], counters["vec_steps"], min(1.0, counters["env_steps"] / budget))
    return Credit(algorithm, coefficients(config.algo, clock))
