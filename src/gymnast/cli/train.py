"""`gymnast train`: what to train, and with which settings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gymnast.cli.budget import (
    AllMetrics,
    CaptureVideo,
    Device,
    EnvSteps,
    Profile,
    Quiet,
    Track,
    VecSteps,
    settings_of,
    trackers,
)
from gymnast.cli.many import several_of
from gymnast.cli.options import Overrides, RunsDir, Trust
from gymnast.config.algorithms import names
from gymnast.config.load import Resolved
from gymnast.config.variants import infer_algorithm
from gymnast.errors import UsageError, did_you_mean
from gymnast.service.configs import resolved_config

InitFrom = Annotated[
    str | None,
    typer.Option(
        "--init-from",
        "-i",
        "--trained-agent",
        help="Start from the weights of a run (@last, RUN/step=N …) or of a Stable-Baselines3 model.zip.",
        show_default=False,
    ),
]


def train(
    reference: Annotated[
        str | None,
        typer.Argument(metavar="ENV:VARIANT", help="What to train, e.g. CartPole-v1:ppo.", show_default=False),
    ] = None,
    overrides: Overrides = None,
    env_steps: EnvSteps = None,
    vec_steps: VecSteps = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of all randomness.", show_default=False)] = None,
    device: Device = None,
    init_from: InitFrom = None,
    quiet: Quiet = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Show the summary and ask before starting.")] = False,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="One run per seed: how many (5), or which (0,7,12).", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, help="Seeds trained at the same time (default: one per core).", show_default=False
        ),
    ] = None,
    chain: Annotated[
        int | None,
        typer.Option(
            "--chain",
            min=2,
            help="Train this many runs, each from the best weights of the one before.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", help="End a chain when solved (default), or train all its runs (end).", show_default=False
        ),
    ] = None,
    agreed: Annotated[
        bool, typer.Option("--yes", "-y", help="Start without asking, even if the run needs a lot of memory.")
    ] = False,
    unfinished: Annotated[
        bool,
        typer.Option("--resume", help="Continue the newest unfinished run of exactly this config, if there is one."),
    ] = False,
    all_metrics: AllMetrics = None,
    profile: Profile = False,
    track: Track = None,
    capture_video: CaptureVideo = None,
    algo: Annotated[
        str | None,
        typer.Option("--algo", help="Algorithm, as in rl-zoo: ENV --algo ppo is ENV:ppo.", show_default=False),
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", "--env-id", help="Environment, as in rl-zoo.", show_default=False)
    ] = None,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Train an agent until its environment is solved or the budget is spent.

    Any Gymnasium id works: without a preset, settings are chosen from its spaces. Every key is also an option, under
    gymnast's name or that of Stable-Baselines3, rl-zoo or CleanRL: --learning-rate 3e-4, --num-envs 8,
    --hyperparams gamma:0.98 n_steps:64.
    """
    alone = {"--resume": unfinished, "--confirm": confirm, "--profile": profile}
    several = several_of(seeds, jobs, chain, until, alone)
    resolved = asked(
        reference=reference,
        overrides=overrides,
        algo=algo,
        env=env,
        env_steps=env_steps,
        vec_steps=vec_steps,
        seed=seed,
        device=device,
        init_from=init_from,
        all_metrics=all_metrics,
        sinks=trackers(track),
        capture_video=capture_video,
    )
    from gymnast.cli.start import start_training  # Gymnasium, then torch: a wrong name does not wait for them

    start_training(
        resolved,
        runs_dir,
        quiet=quiet,
        confirm=confirm,
        unfinished=unfinished,
        profile=profile,
        trust=trust,
        agreed=agreed,
        several=several,
    )


def asked(
    *, reference: str | None, overrides: list[str] | None, algo: str | None, env: str | None, **options: Any
) -> Resolved:
    """The config that the command's words mean; `options` are keys of the config by their last part."""
    reference, overrides = _reference(reference, overrides or [], algo, env)
    sections = dict.fromkeys(("all_metrics", "sinks", "capture_video"), "log")
    settings = settings_of({f"{sections.get(name, 'train')}.{name}": value for name, value in options.items()})
    return resolved_config(reference, overrides, settings)


def _reference(reference: str | None, overrides: list[str], algo: str | None, env: str | None) -> tuple[str, list[str]]:
    """`--env X --algo ppo` and `X:ppo` are the same; with the former the first positional is already a setting."""
    if reference is not None and "=" in reference:
        overrides = [reference, *overrides]
        reference = None
    if env is not None:
        reference = env
    if reference is None:
        raise UsageError("Say what to train: gymnast train CartPole-v1:ppo (`gymnast config list` shows all presets).")
    if algo is not None and algo not in names():
        raise UsageError(_no_algorithm(algo, reference))
    if algo is not None:
        reference = f"{reference}:{algo}"
    return reference, overrides


def _no_algorithm(algo: str, reference: str) -> str:
    """Why `--algo` is refused: it may be the name of a variant, or of an algorithm that is not here."""
    wrong = f"--algo takes an algorithm, and '{algo}' is not one."
    if infer_algorithm(algo) is not None:
        return f"{wrong} A variant belongs to the name: gymnast train {reference}:{algo}"
    return f"{wrong}{did_you_mean(algo, names())} Algorithms: {', '.join(names())}."
