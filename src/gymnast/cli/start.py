"""What `train` and `resume` do once their arguments are read; everything heavy is imported here."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from gymnast.cli import imported, leaving_at_once

if TYPE_CHECKING:
    from gymnast.config.load import Resolved
    from gymnast.training.loop import TrainResult
    from gymnast.training.profile import Profile

SPINS = "20000"
"""How long a thread of torch looks for work: across the gaps within an update, and not through a step of the envs."""


def start_training(
    reference: str,
    overrides: list[str],
    settings: dict[str, Any],
    runs_dir: Path | None,
    *,
    quiet: bool,
    confirm: bool,
    unfinished: bool = False,
    profile: bool = False,
) -> None:
    """Resolve, train, and leave with the right exit code."""
    from gymnast.config.load import resolve

    # Wrong names fail here, before the seconds that importing torch takes.
    resolved = resolve(reference, overrides, settings=settings, generic=generic)
    from gymnast.envs.choose import with_vectorization
    from gymnast.runs.refs import unfinished_run
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    if resolved.config.env.n_envs == "auto":
        from gymnast.runs.bench import settled

        resolved = settled(resolved, root)
    resolved = with_vectorization(resolved)
    _pin_init_from(resolved, root)
    left = unfinished_run(root, resolved.config.model_dump(mode="json"))
    if left is not None and unfinished:
        resume_training(left.id, [], {}, runs_dir, quiet=quiet, optimizer=True, profile=profile)
        return
    if left is not None and not left.is_alive():
        resolved.notices.append(
            f"Run {left.id} of this very config is not finished: this is a new one. `gymnast resume {left.id}`, or --resume "
            "on this command, goes on with it."
        )
    env = resolved.config.env
    if env.vectorization == "workers" and env.start_method == "forkserver":
        from gymnast.envs.workers import start_server

        start_server(atari=env.atari is not None)  # its imports run beside those of torch
    _let_idle_threads_sleep(resolved)
    with leaving_at_once():
        from gymnast.training.train import train

    imported()
    from gymnast.hub.beginning import model_source

    ask = _ask if confirm else None
    source = model_source(resolved.config)
    recorded = _profile(profile)
    result = train(resolved, root, reporter=_reporter(quiet), confirm=ask, source=source, profile=recorded)
    _leave(result)


def _pin_init_from(resolved: Resolved, root: Path) -> None:
    """Say which weights `train.init_from` names now; a wrong reference fails here, before torch is imported."""
    train = resolved.config.train
    if train.init_from is None:
        return
    from gymnast.runs.origin import pinned

    train = train.model_copy(update={"init_from": pinned(root, train.init_from)})
    resolved.config = resolved.config.model_copy(update={"train": train})


def resume_training(
    reference: str,
    overrides: list[str],
    settings: dict[str, Any],
    runs_dir: Path | None,
    *,
    quiet: bool,
    optimizer: bool,
    profile: bool = False,
) -> None:
    """Continue a run."""
    from gymnast.config.load import from_saved
    from gymnast.errors import UsageError
    from gymnast.runs.refs import resolve_run
    from gymnast.runs.store import runs_root

    root = runs_root(runs_dir)
    run = resolve_run(root, reference)
    resolved = from_saved(run.config(), overrides, settings)
    if resolved.config.train.init_from != run.config().get("train", {}).get("init_from"):
        raise UsageError(
            f"Run {run.id} has begun already, and init_from is for new ones: "
            f"gymnast train {resolved.config.name} --init-from {resolved.config.train.init_from}"
        )
    _let_idle_threads_sleep(resolved)
    with leaving_at_once():
        from gymnast.training.train import Resume, resume_point, train

    imported()
    point, skipped = resume_point(run)
    reporter = _reporter(quiet)
    for sentence in skipped:
        reporter.warn(sentence)
    for axis in ("env_steps", "vec_steps"):
        budget, done = getattr(resolved.config.train, axis), int(point.manifest.counters[axis])
        unjudged = point.state["loop"].get("jobs")  # interrupted in its last evaluation: that is all there is to do
        ended = run.status().state == "finished"  # else it was stopped after its last checkpoint, before its last word
        if budget is not None and done >= budget and ended and not unjudged:
            option = {"env_steps": "-n", "vec_steps": "--vec-steps"}[axis]
            raise UsageError(
                f"Run {run.id} has spent its budget of {budget:,} {axis.replace('_', ' ')}. "
                f"Give it more: gymnast resume {run.id} {option} {2 * done}"
            )
    _leave(train(resolved, root, reporter=reporter, resume=Resume(run, point, optimizer), profile=_profile(profile)))


def _let_idle_threads_sleep(resolved: Resolved) -> None:
    """Keep torch's threads from spinning on the cores that env workers need; read once, when torch is imported."""
    if resolved.config.env.vectorization == "workers" and not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS


def generic(env_id: str, algorithm: str, env: dict[str, Any]) -> dict[str, Any]:
    """Settings for an env without a file, chosen from its spaces; imports Gymnasium only then."""
    from gymnast.envs.defaults import generic_defaults

    return generic_defaults(env_id, algorithm, env)


def _profile(wanted: bool) -> Profile | None:
    if not wanted:
        return None
    from gymnast.training.profile import Profile

    return Profile.of_this_process()


def _reporter(quiet: bool) -> Any:
    from rich.console import Console

    from gymnast.training.report import Reporter

    return Reporter(Console(file=cast("IO[str]", SteadyOutput(sys.stdout))), quiet=quiet)


class SteadyOutput:
    """Standard output that may lead to a full disk, a closed pipe or a lost terminal: a training goes on without its words."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream does, or not at all."""
        with _lost_words_ignored():
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """What does not fit is tried again next time."""
        with _lost_words_ignored():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _lost_words_ignored() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EIO):
            raise


def _ask() -> bool:
    import typer

    return typer.confirm("Start training?", default=True)


def _leave(result: TrainResult | None) -> None:
    """Exit at once: everything is on disk, and tearing torch down would only delay the prompt."""
    with _lost_words_ignored():
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(130 if result is not None and result.interrupted else 0)
