"""What the tests of the Python API share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Settings of a run of a few iterations of 64 steps."""
    return {
        "env__n_envs": 4,
        "algo__n_steps": 16,
        "algo__batch_size": 32,
        "algo__n_epochs": 1,
        "eval__episodes": 3,
        "policy__hidden": [16],
    }
