"""Going on with a run that has ended, or has settings that only a new run can have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gymnast.config.load import Resolved
from gymnast.config.merging import SAVED_RUN
from gymnast.errors import UsageError
from gymnast.runs.store import Run


def check_beginning(run: Run, resolved: Resolved) -> None:
    """Refuse other weights to begin with: the run has begun."""
    if resolved.config.train.init_from != run.config().get("train", {}).get("init_from"):
        raise UsageError(
            f"Run {run.id} has begun already, and init_from is for new ones: "
            f"gymnast train {resolved.config.name} --init-from {resolved.config.train.init_from}"
        )


def further(
    run: Run, resolved: Resolved, done: Mapping[str, Any], *, how: str = "gymnast resume {run.typed} -n {steps}"
) -> Resolved:
    """How a finished run trains on: as far as its user says, and past the point where it was solved.

    `done` are the counters of its last checkpoint; `how` is what the user types, in words of the shell or of Python.
    """
    train, status = resolved.config.train, run.status()
    axis = "env_steps" if train.env_steps is not None else "vec_steps"
    budget, steps = getattr(train, axis), int(done[axis])
    advice = f"To train it further: {how.format(run=run, steps=2 * int(done['env_steps']))}"
    if resolved.origins.get(f"train.{axis}") == SAVED_RUN:
        raise UsageError(
            f"Run {run.id} is finished ({status.stop_reason} after {done['env_steps']:,} env steps). {advice}"
        )
    if budget <= steps:
        name = axis.replace("_", " ")
        raise UsageError(f"Run {run.id} has trained for {steps:,} {name}, so a budget of {budget:,} is spent. {advice}")
    if not status.solved or not train.stop_when_solved or resolved.origins["train.stop_when_solved"] != SAVED_RUN:
        return resolved
    resolved.notices.append(
        f"Run {run.id} is solved already: it now trains to the end of its budget, and its best checkpoint is kept "
        "(train.stop_when_solved=true stops it as soon as an evaluation solves the env again)."
    )
    train = train.model_copy(update={"stop_when_solved": False})
    return dataclasses.replace(resolved, config=resolved.config.model_copy(update={"train": train}))
