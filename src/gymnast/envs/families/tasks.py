"""The env that plays several tasks by turns (`envs/task_switch.py`): no ids of its own, only its state to save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnast.envs.families.family import Family

if TYPE_CHECKING:
    import gymnasium as gym

    from gymnast.envs.families.family import Snapshot


def _snapshot(env: gym.Env) -> Snapshot | None:
    switch: Any = env.unwrapped
    found: Snapshot | None = switch.snapshot()
    return found


TASKS = Family(name="tasks", homes=("gymnast.envs.task_switch",), snapshot=_snapshot, draws_anywhere=True)
