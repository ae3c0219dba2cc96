"""One run from its beginning: settle what is open, build the parts, take weights or a checkpoint up, then loop.

Nothing is written before training really starts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gymnast.config.load import Resolved
from gymnast.config.plan import AUTO
from gymnast.envs.choose import with_vectorization
from gymnast.envs.time_limits import time_limit_of
from gymnast.errors import CheckpointError, UsageError
from gymnast.evaluation.by_parameter import metric_names
from gymnast.metrics.alerts.watch import Watch
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.quality import judged_in
from gymnast.metrics.sinks.base import find_sinks
from gymnast.metrics.sinks.jsonl import JsonlSink, MetricRows
from gymnast.runs import checkpoint, index, trust
from gymnast.runs.bulk import BulkStore
from gymnast.runs.rescue import Appended, Rescue
from gymnast.runs.settling import settle_envs
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.build import make_trainer
from gymnast.training.diagnostics.tracing import HashObserver, TraceFile
from gymnast.training.evaluating.cadence import make_cadence
from gymnast.training.evaluating.jobs import Evaluations
from gymnast.training.evaluating.rounds import EvaluationRounds
from gymnast.training.evaluating.setup import eval_env_config
from gymnast.training.evaluating.standing import Scale, Standing
from gymnast.training.keeping.callbacks import Listeners
from gymnast.training.keeping.checkpoints import Checkpoints, Kept
from gymnast.training.keeping.exactness import caveats
from gymnast.training.keeping.failures import memory_explained
from gymnast.training.keeping.log_records import reported
from gymnast.training.keeping.loop import Loop
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.keeping.rows import RowMaker
from gymnast.training.keeping.run_log import RunLog, open_sinks
from gymnast.training.keeping.signals import StopRequest
from gymnast.training.keeping.stopping import make_rules
from gymnast.training.on_policy import OnPolicyTrainer
from gymnast.training.stages.curriculum import Curriculum
from gymnast.training.stages.promotion import Stages
from gymnast.training.trainer import Trainer, repeats
from gymnast.training.transfer.begin import Source, Transfer, evaluate_beginning, find_source, take_over

if TYPE_CHECKING:
    from gymnast.training.diagnostics.profile import Profile


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
    listeners: Listeners | None = None,
    leaves: bool = False,
) -> TrainResult | None:
    """Train one run to its end; None when `confirm` says no. Nothing is written before training really starts.

    `source` is what `train.init_from` names where that is no run; a resumed run has its weights already.
    `profile` records where the time goes and writes it into the run's folder; `listeners` are a program's callbacks.
    `leaves` says that the process ends with this run: what the result then names as unshown is the caller's to show.
    """
    timer = StageTimer()
    reporter = reporter or Reporter(quiet=True)
    source = None if resume else source or find_source(resolved.config, root)
    resolved = _settled(resolved, root, resume, source)
    # A typo in the name of a metric, a sink or an alert is found before envs are made.
    make_rules(resolved.config, load_catalogue())
    find_sinks(resolved.config)
    eval_env_config(resolved.config)
    Watch(resolved.config.model_dump(mode="json"))
    with memory_explained(resolved.config, building=True):
        trainer = make_trainer(resolved.config)
    try:
        resolved = _as_settled(resolved, trainer)
        transfer = None if source is None else take_over(trainer, source)
        reporter.summary(trainer, resolved, resume.run.id if resume else None)
        if transfer is not None:
            reporter.transferred(transfer)
        if confirm is not None and not confirm():
            return None
        fresh_root = not root.exists()
        # Signals first: one that comes while the run is being made must not leave a run without a checkpoint.
        with (
            reported(reporter),
            StopRequest(trainer.config.train.grace_period) as stop,
            (run := _open_run(root, resolved, resume)).lock(),
            ExitStack() as stack,
        ):
            start = Start(trainer, run, resume, reporter, timer, stop, stack)
            loop = start.loop(fresh_root=fresh_root, profile=profile, listeners=listeners, leaves=leaves)
            before = None if transfer is None else start.evaluation_of(transfer)
            return loop.run(load_catalogue(), before)
    finally:
        trainer.close()
        reporter.close()


def _settled(resolved: Resolved, root: Path, resume: Resume | None, source: Source | None) -> Resolved:
    """What the config left open and is decided before envs are made."""
    if source is not None:
        resolved = source.pin(resolved)
    if resume is None:
        return settle_envs(resolved, root)
    return with_vectorization(resolved, saved=resume.run.config()["env"].get("vectorization", "auto"))


class Start:
    """Puts the parts of one attempt together, restored where it goes on from a checkpoint."""

    def __init__(
        self,
        trainer: Trainer,
        run: Run,
        resume: Resume | None,
        reporter: Reporter,
        timer: StageTimer,
        stop: StopRequest,
        stack: ExitStack,
    ) -> None:
        """`stack` closes what is opened here."""
        self._trainer, self._run, self._resume = trainer, run, resume
        self._reporter, self._timer, self._stop, self._stack = reporter, timer, stop, stack
        config, plan = trainer.config, trainer.config.plan
        self._curriculum = None
        if plan is not None and plan.stages:
            self._curriculum = Curriculum(config, plan)
            config = self._curriculum.config  # as long as its first stage lasts
        on_gpu = trainer.about.device.type == "cuda"
        self._evaluations = Evaluations(config, reporter, timer, stop, on_gpu=on_gpu)
        stack.callback(self._evaluations.close)
        limit = time_limit_of(eval_env_config(config)[0])
        self._cadence = make_cadence(config, trainer.plan, time_limit=limit)
        spec = config.spec
        random = None if spec.random_score is None else spec.random_score.score
        self._standing = Standing()
        if plan is None:  # scores of several tasks have no common scale
            self._standing.scale = Scale(trainer.plan.vec_steps, random, spec.solved_at)
        self._kept = Kept(trainer.plan.checkpoint_every)
        self._bulk = BulkStore(run.folder)

    def loop(self, *, fresh_root: bool, profile: Profile | None, listeners: Listeners | None, leaves: bool) -> Loop:
        """The loop, about to run."""
        trainer, run, reporter = self._trainer, self._run, self._reporter
        config, catalogue = trainer.config, load_catalogue()
        attempt = 1
        if self._resume is not None:
            attempt = self._go_on(self._resume)
        reporter.open_log(run.log_path, config.log.max_log_bytes)
        resumed_from = trainer.counters.env_steps if self._resume else None
        keys = [metric.name for metric in catalogue]
        if config.plan is None:
            keys += metric_names(eval_env_config(config)[0].randomise)
        file = JsonlSink(run.metrics_path, keys, attempt=attempt, resumed_from=resumed_from)
        self._stack.enter_context(file)
        last = self._resume.checkpoint.manifest.metrics if self._resume else None
        rows = RowMaker(trainer, self._timer, trainer.counters.env_steps)
        watch = Watch(config.model_dump(mode="json"), actions=trainer.about.choices)
        sinks = open_sinks(find_sinks(config), run, config, reporter)
        log = RunLog(run, rows, file, sinks, watch, reporter.warn, last, profile)
        trainer.wants_histograms = log.wants_histograms
        if profile is not None:
            profile.attach(trainer, self._timer, reporter)
        rescue = Rescue(run, [file, reporter, *self._traced()])
        checkpoints = Checkpoints(run, trainer, self._kept, self._timer, rescue, reporter.warn, self._bulk)
        curriculum = self._curriculum
        rules = make_rules(config if curriculum is None else curriculum.config, catalogue)
        rounds = EvaluationRounds(trainer, self._evaluations, self._cadence, self._standing, rules, checkpoints, log)
        stages = None
        if curriculum is not None and config.plan is not None:
            stages = Stages(curriculum, config.plan, trainer, rounds, checkpoints, reporter, self._timer)
            if self._resume is not None:
                stages.restore()
        return Loop(
            trainer,
            log,
            checkpoints,
            rounds,
            self._stop,
            reporter,
            self._timer,
            fresh_root=fresh_root,
            listeners=listeners,
            leaves=leaves,
            stages=stages,
        )

    def _go_on(self, resume: Resume) -> int:
        """Take the checkpoint up; returns the number of this attempt."""
        trainer, run, saved = self._trainer, self._run, resume.checkpoint
        config = trainer.config
        # Before the status changes: what does not fit leaves the run as it was.
        with checkpoint.understood(saved.folder):
            self._restore(resume)
        for sentence in caveats(config, saved.manifest.versions, trainer.about.device.type):
            self._reporter.warn(sentence)
        checkpoint.tidy(run.folder, saved.folder.name, self._kept.best.step)
        checkpoint.forget_after(run.folder, trainer.counters.env_steps)
        dumped = config.model_dump(mode="json")
        trust.seal(run.folder, dumped)
        return run.begin(dumped, start=saved.folder.name, optimizer=resume.optimizer).attempt

    def _restore(self, resume: Resume) -> None:
        trainer, saved = self._trainer, resume.checkpoint
        counters, state = saved.manifest.counters, saved.state
        trainer.load_state(saved.policy, state["session"], counters, optimizer=resume.optimizer)
        self._bulk.restore(saved.manifest.bulk, trainer.bulk())
        loop = state["loop"]
        self._cadence.load_state(loop["cadence"])
        self._standing.load_state(loop)
        if "judged" not in loop and self._run.metrics_path.exists():  # saved by a version that did not keep it
            at = counters["env_steps"]
            rows = (row for row in MetricRows(self._run.metrics_path) if row["env_steps"] <= at)
            self._standing.judged = judged_in(rows)
        if self._curriculum is not None:
            self._curriculum.load_state(loop["stages"])
        self._kept.load_state(loop)
        self._kept.saved_at = trainer.counters.env_steps
        self._evaluations.load_state(loop.get("jobs", []), saved.folder)

    def _traced(self) -> list[Appended]:
        """The file of hashes, where the run writes them."""
        trainer = self._trainer
        if not (trainer.config.train.trace_hashes and isinstance(trainer, OnPolicyTrainer)):
            return []
        file = TraceFile(self._run.folder / "trace.jsonl")
        self._stack.callback(file.close)
        trainer.observer = HashObserver(trainer.flat, file)
        return [file]

    def evaluation_of(self, transfer: Transfer) -> Callable[[], None]:
        """The evaluation before the first update of a run that begins with another's weights."""

        def evaluate() -> None:
            evaluate_beginning(transfer, self._trainer, self._evaluations, self._cadence, self._reporter, self._run)

        return evaluate


def _as_settled(resolved: Resolved, trainer: Trainer) -> Resolved:
    """The config that trains, with the origin of each value that `auto` stood for."""
    origins = dict(resolved.origins)
    for key, reason in trainer.about.reasons.items():
        section, name = key.split(".")
        if getattr(getattr(resolved.config, section), name, None) in ("auto", None):
            origins[key] = f"{AUTO}{reason}"
    return replace(resolved, config=trainer.config, origins=origins)


def _open_run(root: Path, resolved: Resolved, resume: Resume | None) -> Run:
    if resume is not None:
        return resume.run
    config = resolved.config.model_dump(mode="json")
    run = Run.create(root, config)
    trust.seal(run.folder, config)
    index.upsert(run)
    return run


def resume_point(run: Run, *, inexact: bool = False) -> tuple[checkpoint.Checkpoint, list[str]]:
    """The newest whole checkpoint of a run that repeats it to the bit, and what had to be skipped.

    With `inexact`, the newest one at all: where its envs could not be saved, fresh episodes begin.
    """
    status = run.status()
    if run.is_alive():
        raise UsageError(f"Run {run.id} is still training (process {status.pid}).")
    if inexact:
        newest = checkpoint.read_pointer(run.folder, checkpoint.NEWEST)
        if newest is not None:
            found = checkpoint.load(run.checkpoints / newest)
            return found, [f"{newest} was saved between two resets of the envs: fresh episodes begin there."]
    last = checkpoint.read_pointer(run.folder, "last")  # what it points at was meant to be gone on from
    with contextlib.suppress(CheckpointError):
        return checkpoint.load_latest(
            run.folder, accept=lambda found: found.folder.name == last or repeats(found.state)
        )
    found, skipped = checkpoint.load_latest(run.folder)
    return found, [*skipped, f"{found.folder.name} was saved between two resets of the envs: this resume is not exact."]
