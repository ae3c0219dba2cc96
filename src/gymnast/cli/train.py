"""`gymnast train` and `gymnast resume`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gymnast.cli.options import Overrides, RunsDir

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
InitFrom = Annotated[
    str | None,
    typer.Option(
        "--init-from",
        "-i",
        "--trained-agent",
        help="Begin with the weights of a run (@last, RUN/step=N …) or of a Stable-Baselines3 model.zip.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result.")]
Profile = Annotated[
    bool,
    typer.Option("--profile", help="Write where the time goes into the run's folder: a table and a Perfetto trace."),
]


def train(
    reference: Annotated[
        str | None,
        typer.Argument(metavar="ENV:VARIANT", help="What to train, e.g. CartPole-v1:ppo.", show_default=False),
    ] = None,
    overrides: Overrides = None,
    env_steps: EnvSteps = None,
    vec_steps: VecSteps = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of everything random.", show_default=False)] = None,
    device: Device = None,
    init_from: InitFrom = None,
    quiet: Quiet = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Show the summary and ask before starting.")] = False,
    unfinished: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the newest unfinished run of exactly this config, if there is one."),
    ] = False,
    profile: Profile = False,
    algo: Annotated[str | None, typer.Option("--algo", help="Variant, as in rl-zoo.", show_default=False)] = None,
    env: Annotated[
        str | None, typer.Option("--env", "--env-id", help="Environment, as in rl-zoo.", show_default=False)
    ] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Train an agent until its environment is solved or the budget is spent.

    Any Gymnasium id works: without a preset, settings are chosen from its spaces.
    """
    reference, overrides = _reference(reference, overrides or [], algo, env)
    settings = _settings(
        {
            "train.env_steps": env_steps,
            "train.vec_steps": vec_steps,
            "train.seed": seed,
            "train.device": device,
            "train.init_from": init_from,
        }
    )
    from gymnast.cli.start import start_training

    start_training(
        reference,
        overrides,
        settings,
        runs_dir,
        quiet=quiet,
        confirm=confirm,
        unfinished=unfinished,
        profile=profile,
    )


def resume(
    reference: Annotated[
        str, typer.Argument(metavar="RUN", help="Run to continue: @last, an id, or a folder.")
    ] = "@last",
    overrides: Overrides = None,
    env_steps: EnvSteps = None,
    vec_steps: VecSteps = None,
    with_: Annotated[
        list[str] | None, typer.Option("--with", help="Continue under another setting (key=value, repeatable).")
    ] = None,
    optimizer: Annotated[
        bool, typer.Option("--optimizer/--no-optimizer", help="Restore the optimizer's state.")
    ] = True,
    device: Device = None,
    quiet: Quiet = False,
    profile: Profile = False,
    runs_dir: RunsDir = None,
) -> None:
    """Continue a run exactly where its last checkpoint stands."""
    settings = _settings({"train.env_steps": env_steps, "train.vec_steps": vec_steps, "train.device": device})
    from gymnast.cli.start import resume_training

    given = [*(overrides or []), *(with_ or [])]
    resume_training(reference, given, settings, runs_dir, quiet=quiet, optimizer=optimizer, profile=profile)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    from gymnast.errors import UsageError

    given = {key: value for key, value in given.items() if value is not None}
    if {"train.env_steps", "train.vec_steps"} <= given.keys():
        raise UsageError("Give -n (env_steps) or --vec-steps, not both: one is the budget, the other follows from it.")
    for key, value in given.items():
        if isinstance(value, float) and not value.is_integer():
            raise UsageError(f"{key} must be a whole number, not {value}.")
    return {key: int(value) if isinstance(value, float) else value for key, value in given.items()}


def _reference(reference: str | None, overrides: list[str], algo: str | None, env: str | None) -> tuple[str, list[str]]:
    """`--env X --algo ppo` and `X:ppo` are the same; with the former the first positional is already a setting."""
    if reference is not None and "=" in reference:
        overrides = [reference, *overrides]
        reference = None
    if env is not None:
        reference = f"{env}:{algo}" if algo else env
    elif reference is not None and algo is not None:
        reference = f"{reference}:{algo}"
    if reference is None:
        from gymnast.errors import UsageError

        raise UsageError("Say what to train: gymnast train CartPole-v1:ppo (`gymnast config list` shows all presets).")
    return reference, overrides
