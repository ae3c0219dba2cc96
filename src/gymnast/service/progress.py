"""How far a run is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnast.errors import GymnastError
from gymnast.runs.store import Run


@dataclass(frozen=True)
class Progress:
    """Steps done and to do. Only what the run folder says: nothing is asked of the process that trains."""

    state: str
    """running, finished, interrupted, failed, or crashed: `running` without a process."""
    alive: bool
    vec_steps: int
    env_steps: int
    budget_vec_steps: int | None
    budget_env_steps: int | None
    share: float | None
    """0..1 of the budget; a run that was solved early ends below 1."""
    seconds: float
    eta_seconds: float | None
    """Until the budget is used up at the pace so far; None unless the run goes on."""
    heartbeat: str


def progress_of(run: Run) -> Progress:
    """The state of a run now."""
    status, state = run.status(), run.shown_state()
    try:
        vec_budget, env_budget = _budget(run.config())
    except GymnastError:  # a damaged config: the steps are still known
        vec_budget = env_budget = None
    share = None
    if env_budget:
        share = min(1.0, status.env_steps / env_budget)
    alive = state == "running"
    eta = None
    if alive and share:
        eta = status.wall_seconds * (1.0 - share) / share
    return Progress(
        state=state,
        alive=alive,
        vec_steps=status.vec_steps,
        env_steps=status.env_steps,
        budget_vec_steps=vec_budget,
        budget_env_steps=env_budget,
        share=share,
        seconds=float(status.wall_seconds),
        eta_seconds=eta,
        heartbeat=status.heartbeat,
    )


def _budget(config: dict[str, Any]) -> tuple[int | None, int | None]:
    """Vec steps and env steps. A saved config names one; the number of envs, which gives the other, was settled by then."""
    train, env = config.get("train"), config.get("env")
    if not isinstance(train, dict) or not isinstance(env, dict):
        return None, None
    vec_steps, env_steps = _count(train.get("vec_steps")), _count(train.get("env_steps"))
    n_envs = _count(env.get("n_envs"))
    if n_envs is None:
        return vec_steps, env_steps
    if env_steps is not None:
        return -(-env_steps // n_envs), env_steps
    if vec_steps is not None:
        return vec_steps, vec_steps * n_envs
    return None, None


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        return None
    return value
