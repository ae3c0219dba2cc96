"""`gymnast resume`: continue a run from its last checkpoint."""

from __future__ import annotations

from pathlib import Path
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
from gymnast.cli.options import Overrides, RunsDir, Trust, resolved_run
from gymnast.cli.process import imported, leaving_at_once, let_idle_threads_sleep
from gymnast.runs.further import check_beginning, further
from gymnast.runs.store import runs_root
from gymnast.runs.trust import usable


def resume(
    reference: Annotated[
        str, typer.Argument(metavar="RUN", help="Run to continue: @last, an id, or a folder.")
    ] = "@last",
    overrides: Overrides = None,
    env_steps: EnvSteps = None,
    vec_steps: VecSteps = None,
    with_: Annotated[
        list[str] | None, typer.Option("--with", help="Continue with another setting (key=value, repeatable).")
    ] = None,
    optimizer: Annotated[
        bool, typer.Option("--optimizer/--no-optimizer", help="Restore the optimizer's state.")
    ] = True,
    device: Device = None,
    inexact: Annotated[
        bool,
        typer.Option("--inexact", help="Continue from the newest weights even if the envs' state could not be saved."),
    ] = False,
    quiet: Quiet = False,
    all_metrics: AllMetrics = None,
    profile: Profile = False,
    track: Track = None,
    capture_video: CaptureVideo = None,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Continue a run exactly from its last checkpoint."""
    settings = settings_of(
        {
            "train.env_steps": env_steps,
            "train.vec_steps": vec_steps,
            "train.device": device,
            "log.all_metrics": all_metrics,
            "log.sinks": trackers(track),
            "log.capture_video": capture_video,
        }
    )
    given = [*(overrides or []), *(with_ or [])]
    resume_training(
        reference,
        given,
        settings,
        runs_dir,
        quiet=quiet,
        optimizer=optimizer,
        profile=profile,
        trust=trust,
        inexact=inexact,
    )


def resume_training(
    reference: str,
    overrides: list[str],
    settings: dict[str, Any],
    runs_dir: Path | None,
    *,
    quiet: bool,
    optimizer: bool,
    profile: bool = False,
    trust: bool = False,
    inexact: bool = False,
) -> None:
    """Continue a run. Wrong references and settings fail before torch is imported."""
    root = runs_root(runs_dir)
    run = resolved_run(reference, runs_dir, trust=trust)
    resolved = usable(run, overrides, settings)
    check_beginning(run, resolved)
    let_idle_threads_sleep(resolved)
    with leaving_at_once():
        from gymnast.cli.launch import train_on  # torch, which mistakes do not wait for

    imported()
    train_on(run, resolved, root, further, quiet=quiet, optimizer=optimizer, profile=profile, inexact=inexact)
