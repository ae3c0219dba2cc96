"""Options that `train` and `resume` share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gymnast.errors import UsageError

EnvSteps = Annotated[
    float | None,
    typer.Option(
        "-n", "--env-steps", "--n-timesteps", "--total-timesteps", help="Budget in env steps.", show_default=False
    ),
]
VecSteps = Annotated[
    float | None, typer.Option("--vec-steps", help="Budget in vector steps (env steps ÷ n_envs).", show_default=False)
]
Device = Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]
AllMetrics = Annotated[
    bool | None,
    typer.Option("--all-metrics", help="Show every metric in the live table (key: a).", show_default=False),
]
Profile = Annotated[
    bool,
    typer.Option(
        "--profile", help="Measure where the time goes; writes a table and a Perfetto trace into the run's folder."
    ),
]

Track = Annotated[
    str | None,
    typer.Option(
        "--track", help="Trackers, e.g. wandb,tensorboard (also trackio); see docs/trackers.md.", show_default=False
    ),
]
CaptureVideo = Annotated[
    bool | None,
    typer.Option(
        "--capture-video/--no-capture-video", help="Send the run's videos to its trackers.", show_default=False
    ),
]


def trackers(names: str | None) -> list[str] | None:
    """`wandb,tensorboard` as a list; None if nothing was said."""
    if names is None:
        return None
    return [name.strip() for name in names.split(",") if name.strip()]


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """What the options say, as keys of the config; a budget on one axis only, in whole steps."""
    given = {key: value for key, value in given.items() if value is not None}
    if {"train.env_steps", "train.vec_steps"} <= given.keys():
        raise UsageError("Give -n (env_steps) or --vec-steps, not both: one is the budget, the other follows from it.")
    for key, value in given.items():
        if isinstance(value, float) and not value.is_integer():
            raise UsageError(f"{key} must be a whole number, not {value}.")
    return {key: int(value) if isinstance(value, float) else value for key, value in given.items()}
