"""Checkpoints for tests, packed, written and pointed at in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnast.runs import checkpoint, durable


def save(
    run_folder: Path, step: int, policy: Any, state: Any, metrics: Any, counters: Any, *, sync: bool = True
) -> Path:
    """Pack and write a checkpoint that `last` then points at."""
    return checkpoint.write(run_folder, checkpoint.pack(step, policy, state, metrics, counters), sync=sync)


def mark_best(run_folder: Path, step: int, *, sync: bool = True) -> None:
    """Point `best` at a saved checkpoint."""
    durable.point(run_folder / "checkpoints", "best", f"step={step}", sync)
