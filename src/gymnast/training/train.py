"""One run from its beginning: settle what is open, build the parts, take weights or a checkpoint up, then loop.

Nothing is written before training really starts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gymnast.config.load import Resolved
from gymnast.config.plan import AUTO
from gymnast.envs.choose import with_vectorization
from gymnast.errors import CheckpointError, UsageError
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.sinks.jsonl import JsonlSink
from gymnast.runs import checkpoint, index
from gymnast.runs.bench import settled
from gymnast.runs.store import Run
from gymnast.training.build import build
from gymnast.training.evaluations import Evaluations
from gymnast.training.exactness import caveats
from gymnast.training.failures import memory_explained
from gymnast.training.loop import Loop, TrainResult
from gymnast.training.progress import Progress
from gymnast.training.report import Reporter
from gymnast.training.session import Session, repeats
from gymnast.training.signals import StopRequest
from gymnast.training.stopping import make_cadence, make_rules
from gymnast.training.transfer import Source, find_source, take_over

if TYPE_CHECKING:
    from gymnast.training.profile import Profile


@dataclass
class Resume:
    """Which run to continue, from which checkpoint."""

    run: Run
    checkpoint: checkpoint.Checkpoint
    optimizer: bool = True


def train(
    resolved: Resolved,
    root: Path,
    *,
    reporter: Reporter | None = None,
    confirm: Callable[[], bool] | None = None,
    resume: Resume | None = None,
    source: Source | None = None,
    profile: Profile | None = None,
) -> TrainResult | None:
    """Train one run to its end; None when `confirm` says no. Nothing is written before training really starts.

    `source` is what `train.init_from` names where that is no run; a resumed run has its weights already.
    `profile` records where the time goes and writes it into the run's folder.
    """
    started = time.perf_counter()
    reporter = reporter or Reporter(quiet=True)
    catalogue = load_catalogue()
    source = None if resume else source or find_source(resolved.config, root)
    if source is not None:
        resolved = source.pin(resolved)
    if resume is None:
        resolved = settled(resolved, root)
    saved = None if resume is None else resume.run.config()["env"].get("vectorization", "auto")
    resolved = with_vectorization(resolved, saved=saved)
    config = resolved.config
    rules = make_rules(config, catalogue)
    with memory_explained(config, building=True):
        session = build(config)
    resolved, config = with_precision(resolved, session), session.config
    evaluations = Evaluations(config, reporter, on_gpu=session.device.type == "cuda")
    try:
        transfer = None if source is None else take_over(session, source)
        reporter.summary(session, resolved, resume.run.id if resume else None)
        if transfer is not None:
            reporter.transferred(transfer)
        if confirm is not None and not confirm():
            return None
        progress = Progress(make_cadence(config, session.plan), next_save=session.plan.checkpoint_every)
        fresh = not root.exists()
        # Signals first: one that comes while the run is being made must not leave a run without a checkpoint.
        with StopRequest(config.train.grace_period) as stop, (run := _open_run(root, resolved, resume)).lock():
            attempt = 1
            if resume:
                # Before the status changes: what does not fit leaves the run as it was.
                _restore(session, progress, evaluations, resume)
                for sentence in caveats(config, resume.checkpoint.manifest.versions, session.device.type):
                    reporter.warn(sentence)
                start_name = resume.checkpoint.folder.name
                checkpoint.tidy(run.folder, start_name, progress.best_step)
                status = run.begin(config.model_dump(mode="json"), start=start_name, optimizer=resume.optimizer)
                attempt = status.attempt
            reporter.open_log(run.log_path, config.log.max_log_bytes)
            keys = [metric.name for metric in catalogue]
            resumed_from = session.counters.env_steps if resume else None
            with JsonlSink(run.metrics_path, keys, attempt=attempt, resumed_from=resumed_from) as sink:
                loop = Loop(session, evaluations, progress, rules, run, sink, reporter, catalogue, stop, started, fresh)
                loop.transfer, loop.profile = transfer, profile
                if resume:
                    loop.rows.last = dict(resume.checkpoint.manifest.metrics)
                return loop.run_all()
    finally:
        evaluations.close()
        session.envs.close()
        reporter.close()


def with_precision(resolved: Resolved, session: Session) -> Resolved:
    """The same with `auto` decided, so that the config saved with a run says it and another machine cannot change it."""
    if resolved.config.policy.precision != "auto":
        return resolved
    origin = f"{AUTO}{session.reasons['policy.precision']}"
    return replace(resolved, config=session.config, origins={**resolved.origins, "policy.precision": origin})


def _open_run(root: Path, resolved: Resolved, resume: Resume | None) -> Run:
    if resume is not None:
        return resume.run
    run = Run.create(root, resolved.config.model_dump(mode="json"))
    index.upsert(run)
    return run


def _restore(session: Session, progress: Progress, evaluations: Evaluations, resume: Resume) -> None:
    state = resume.checkpoint.state
    session.load_state(
        resume.checkpoint.policy, state["session"], resume.checkpoint.manifest.counters, optimizer=resume.optimizer
    )
    progress.load_state(state["loop"])
    evaluations.load_state(state["loop"].get("jobs", []), resume.checkpoint.folder)
    progress.saved_at = session.counters.env_steps


def resume_point(run: Run) -> tuple[checkpoint.Checkpoint, list[str]]:
    """The newest whole checkpoint of a run that repeats it to the bit, and what had to be skipped."""
    status = run.status()
    if run.is_alive():
        raise UsageError(f"Run {run.id} is still training (process {status.pid}).")
    last = checkpoint.read_pointer(run.folder, "last")  # what it points at was meant to be gone on from
    with contextlib.suppress(CheckpointError):
        return checkpoint.load_latest(
            run.folder, accept=lambda found: found.folder.name == last or repeats(found.state)
        )
    found, skipped = checkpoint.load_latest(run.folder)
    return found, [*skipped, f"{found.folder.name} was saved between two resets of the envs: this resume is not exact."]
