"""What of a config is decided here before envs are made, and without torch: how many envs there are, and how they are stepped."""

from __future__ import annotations

from pathlib import Path

from gymnast.config.load import Resolved
from gymnast.envs.choose import with_vectorization
from gymnast.runs.bench import settled


def settle_envs(resolved: Resolved, root: Path) -> Resolved:
    """For a new run: `env.n_envs` by what was measured on this machine, and the fastest way to step the same env."""
    return with_vectorization(settled(resolved, root))
