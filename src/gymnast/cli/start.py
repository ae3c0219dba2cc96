"""What `train` and `resume` do once their arguments are read; everything heavy is imported here."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.cli import imported

if TYPE_CHECKING:
    from gymnast.training.loop import TrainResult


def start_training(
    reference: str, overrides: list[str], settings: dict[str, Any], runs_dir: Path | None, *, quiet: bool, confirm: bool
) -> None:
    """Resolve, train, and leave with the right exit code."""
    from gymnast.config.load import resolve

    # Wrong names fail here, before the seconds that importing torch takes.
    resolved = resolve(reference, overrides, settings=settings, generic=generic)
    from gymnast.runs.store import runs_root
    from gymnast.training.loop import train

    imported()
    ask = _ask if confirm else None
    result = train(resolved, runs_root(runs_dir), reporter=_reporter(quiet), confirm=ask)
    _leave(result)


def resume_training(
    reference: str,
    overrides: list[str],
    settings: dict[str, Any],
    runs_dir: Path | None,
    *,
    quiet: bool,
    optimizer: bool,
) -> None:
    """Continue a run."""
    from gymnast.config.load import from_saved
    from gymnast.errors import UsageError
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    run = resolve_run(root, reference)
    resolved = from_saved(run.config(), overrides, settings)
    from gymnast.training.loop import Resume, resume_point, train

    imported()
    point, skipped = resume_point(run)
    reporter = _reporter(quiet)
    for sentence in skipped:
        reporter.warn(sentence)
    for axis in ("env_steps", "vec_steps"):
        budget, done = getattr(resolved.config.train, axis), int(point.manifest.counters[axis])
        if budget is not None and done >= budget:
            option = {"env_steps": "-n", "vec_steps": "--vec-steps"}[axis]
            raise UsageError(
                f"Run {run.id} has spent its budget of {budget:,} {axis.replace('_', ' ')}. "
                f"Give it more: gymnast resume {run.id} {option} {2 * done}"
            )
    _leave(train(resolved, root, reporter=reporter, resume=Resume(run, point, optimizer)))


def generic(env_id: str, algorithm: str, env: dict[str, Any]) -> dict[str, Any]:
    """Settings for an env without a file, chosen from its spaces; imports Gymnasium only then."""
    from gymnast.envs.registry import generic_defaults

    return generic_defaults(env_id, algorithm, env)


_generic = generic  # its former name, which other commands still import


def _reporter(quiet: bool) -> Any:
    from rich.console import Console

    from gymnast.training.report import Reporter

    return Reporter(Console(), quiet=quiet)


def _ask() -> bool:
    import typer

    return typer.confirm("Start training?", default=True)


def _leave(result: TrainResult | None) -> None:
    """Exit at once: everything is on disk, and tearing torch down would only delay the prompt."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130 if result is not None and result.interrupted else 0)
