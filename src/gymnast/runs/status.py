"""The state of a run, as its `status.json` says."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime

from gymnast.runs.process import machine, process_alive

STATES = ("running", "finished", "interrupted", "failed")
CRASHED = "crashed"
"""Shown for a `running` run whose process is gone; never written, because a killed process cannot write it."""
HEARTBEAT_FRESH = 120.0
"""Seconds a sign of life from another machine counts: longer than a compilation or an evaluation between two."""


@dataclass(frozen=True)
class Status:
    """The state of a run. Only the process that trains writes it."""

    state: str
    created: str
    started: str
    """When the present attempt began; a resume is a new attempt."""
    heartbeat: str
    attempt: int = 1
    ended: str | None = None
    stop_reason: str | None = None
    solved: bool = False
    pid: int = 0
    process_start: str | None = None
    host: str = ""
    machine: str = ""
    env_steps: int = 0
    vec_steps: int = 0
    best_return: float | None = None
    """The best score of an evaluation: the exact expected return where the env has one, else the mean."""
    best_at: int | None = None
    """Env steps of the weights with that score."""
    last_return: float | None = None
    last_at: int | None = None
    verdict: str | None = None
    """Whether the env is solved, with the evaluation that decided; the best one where none solved it."""
    eval_engine: str | None = None
    """What played the evaluation episodes where it was not Gymnasium's own env: `EnvPool 1.2.5`."""
    wall_seconds: float = 0.0
    efficiency: float | None = None
    """Mean evaluated return over the budget: random play is 0, the threshold is 1 (`metrics.quality`)."""
    vec_steps_to_solved: int | None = None
    """Of the weights that solved the env."""
    seconds_to_solved: float | None = None
    action_choices: str | None = None
    """How many choices each part of a discrete action has, `4` or `3,2`; without it only the labels in the spec tell."""

    @property
    def choices(self) -> tuple[int, ...]:
        """The numbers in `action_choices`; none where actions are continuous or the text says something else."""
        parts = (self.action_choices or "").split(",")
        if all(part.isdecimal() for part in parts):
            return tuple(map(int, parts))
        return ()


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "bool": (bool,), "float": (int, float)}
_TYPES |= {f"{name} | None": (*types, type(None)) for name, types in _TYPES.items()}
FIELDS = {field.name: (_TYPES[str(field.type)], field.default) for field in dataclasses.fields(Status)}


def is_alive(status: Status) -> bool:
    """Whether the process that owns this status still trains."""
    if status.state != "running":
        return False
    if status.process_start is not None and status.machine == machine():
        return process_alive(status.pid, status.process_start)
    # Elsewhere (another host or container) the process cannot be seen; its heartbeat in the shared folder can.
    try:
        age = (datetime.now(UTC) - datetime.fromisoformat(status.heartbeat)).total_seconds()
    except (ValueError, TypeError):
        return False
    return age < HEARTBEAT_FRESH
