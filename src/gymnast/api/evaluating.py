"""Judging a run from Python in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnast.api.agent import Agent
from gymnast.api.loading import load
from gymnast.evaluation.evaluate import Evaluation
from gymnast.runs.store import Run


def evaluate(
    reference: str | Path | Run | Agent = "@last",
    episodes: int = 100,
    *,
    seed: int | None = None,
    deterministic: bool | None = None,
    **options: Any,
) -> Evaluation:
    """Play whole episodes of a run's best (or a named) checkpoint on fresh envs; options are those of `gymnast.load`."""
    agent = reference if isinstance(reference, Agent) else load(reference, **options)
    return agent.evaluate(episodes, seed=seed, deterministic=deterministic)
