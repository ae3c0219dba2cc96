"""The training loop: one iteration after another until the budget, a stop rule or a signal ends it.

A checkpoint always describes an iteration boundary, so everything here happens between two iterations or inside one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gymnast.errors import CheckpointError, GymnastError, NonFiniteError
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.sinks.jsonl import JsonlSink
from gymnast.runs import checkpoint, index
from gymnast.runs.housekeeping import discard
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.evaluations import Evaluations, Job
from gymnast.training.failures import memory_explained, with_dump
from gymnast.training.iteration import iterate, prepare_next, start
from gymnast.training.judging import Judge
from gymnast.training.progress import Progress, score_of
from gymnast.training.report import Reporter
from gymnast.training.rows import Row, RowMaker
from gymnast.training.saver import CheckpointSaver
from gymnast.training.session import Session, policy_tensors
from gymnast.training.signals import StopRequest
from gymnast.training.stopping import StopRules
from gymnast.training.tracing import HashObserver, TraceFile
from gymnast.training.transfer import Transfer, judge_beginning

if TYPE_CHECKING:
    from gymnast.training.profile import Profile

HEARTBEAT_SECONDS = 2.0
DRAIN_ITERATIONS = 50
"""How often envs that run ahead of learning are waited for, so that an interrupted run repeats little."""


@dataclass
class TrainResult:
    """How a run ended."""

    run: Run
    stop_reason: str
    solved: bool
    evaluation: Evaluation | None
    env_steps: int
    vec_steps: int
    seconds: float
    interrupted: bool = False
    evaluated_at: int | None = None
    """Env steps of the weights that `evaluation` judged; earlier than the end where a snapshot ended the run."""


@dataclass
class Loop:
    """The parts of one running training, and the steps of its loop."""

    session: Session
    evaluations: Evaluations
    progress: Progress
    rules: StopRules
    run: Run
    sink: JsonlSink
    reporter: Reporter
    catalogue: Catalogue
    stop: StopRequest
    started: float
    fresh_root: bool = False
    timer: StageTimer = field(default_factory=StageTimer)
    last_beat: float = 0.0
    beats: bool = True
    """Whether the last status could be written."""
    interrupted: bool = False
    boundary: checkpoint.Packed | None = None
    """The last boundary, kept while an iteration is too long to wait for."""
    boundary_steps: tuple[int, int] = (0, 0)
    iteration_seconds: float = 0.0
    transfer: Transfer | None = None
    """What the run begins with, where it is not from nothing."""
    profile: Profile | None = None

    def __post_init__(self) -> None:
        keep = self.session.config.train.keep_checkpoints
        self.saver = CheckpointSaver(self.run.folder, keep, self.reporter.warn)
        traced = self.session.config.train.trace_hashes
        self.observer = HashObserver(self.session.flat) if traced else None
        self.trace = TraceFile(self.run.folder / "trace.jsonl") if traced else None
        self.judge = Judge(
            self.session,
            self.evaluations,
            self.progress,
            self.rules,
            self.reporter,
            self.timer,
            self.stop,
            pack=self._pack,
            keep=self._keep_earlier,
        )
        self.rows = RowMaker(self.session, self.timer, self.catalogue, self.session.counters.env_steps)

    def run_all(self) -> TrainResult:
        """Iterate until something ends the run, then leave it evaluated, saved and reported."""
        session, run = self.session, self.run
        self.timer.started = self.started
        if self.profile is not None:
            self.profile.attach(session, self.timer, self.reporter)
        try:
            with memory_explained(session.config):
                start(session)
                if self.transfer is not None:
                    self._judge_beginning(self.transfer)
                with self.reporter.display(self.catalogue, session.config, run.id):
                    reason = self._iterate()
                if self.profile is not None:
                    self.profile.boundary(self.rows.last, last=True)
                return self._finish(reason)
        except BaseException as error:
            saved = self.boundary is not None or self.progress.saved_at >= 0
            new = session.counters.iteration == 0 and self.progress.saved_at < 0
            if isinstance(error, KeyboardInterrupt) and self.stop.keeps_boundary and saved and not new:
                return self._leave_at_boundary()
            self.saver.close()
            dumped = isinstance(error, NonFiniteError) and error.dump is not None
            if new and not dumped:
                discard(run, with_root=self.fresh_root)  # nothing was learnt: leave nothing half-written behind
            else:
                self._fail(error)
            raise
        finally:
            if self.trace is not None:
                self.trace.close()
            if self.profile is not None:
                self.profile.close(run)

    def _judge_beginning(self, transfer: Transfer) -> None:
        self.stop.keeps_boundary = True  # nothing was learnt yet: a signal need not wait
        with self.timer.stage("eval"):
            judge_beginning(transfer, self.session, self.evaluations, self.reporter, self.run)

    def _iterate(self) -> str:
        session = self.session
        while session.counters.env_steps < session.plan.env_steps:
            if self.profile is not None:
                self.profile.boundary(self.rows.last)
            self._keep_boundary()
            began = time.perf_counter()
            if session.counters.iteration == 0 and os.environ.get("GYMNAST_TRACE_STARTUP"):
                print(f"first-env-step {time.time():.4f}", file=sys.stderr, flush=True)
            with contextlib.nullcontext() if self.profile is None else self.profile.iteration():
                row = self._one_iteration()
            self.iteration_seconds = time.perf_counter() - began
            spent = session.counters.env_steps >= session.plan.env_steps
            reason = self.judge(row, spent=spent)
            self._log(row)
            self.progress.history.append(self.judge.late | row)
            self.rows.last = row
            self._keep(row, save=spent or reason is not None)
            now = time.perf_counter()
            self.reporter.update(self.progress.history, now)
            if now - self.last_beat > HEARTBEAT_SECONDS:
                self.last_beat = now
                self._beat()
            unjudged = bool(self.evaluations.jobs)
            if reason is not None and not unjudged:
                return reason
            if self.stop.pending and (unjudged or not spent):  # else there is nothing left to interrupt
                if session.ahead:
                    continue  # one iteration more, after which no env is ahead
                if not session.resumable and self.progress.saved_at != session.counters.env_steps:
                    raise KeyboardInterrupt  # what came after the last reset of the envs is repeated on resume
                return self._interrupt()
        return self._settle()

    def _interrupt(self) -> str:
        self.interrupted = True
        return f"interrupted ({self.stop.name})"

    def _one_iteration(self) -> Row:
        session = self.session
        session.runs_on = not self._drains_next()
        check = self._warn_if_identical if session.counters.iteration == 0 else None
        with self.reporter.activity(f"collecting{self.evaluations.note()}", session.rollout.n_steps) as tick:
            try:
                done = iterate(session, self.timer, observer=self.observer, on_step=tick, on_collected=check)
            except NonFiniteError as error:
                raise with_dump(error, session, self.run.folder) from error
        if self.observer is not None and self.trace is not None:
            self.trace.write(session.counters.iteration, session.counters.env_steps, self.observer.hashes)
        row = self.rows(done, solved=self.progress.solved)
        prepare_next(session)
        return row

    def _drains_next(self) -> bool:
        """Whether envs must stand still at the next boundary, because all of the run is saved there or it ends."""
        counters, plan = self.session.counters, self.session.plan
        steps = counters.env_steps + self.session.rollout.n_steps * plan.n_envs
        due = steps >= min(self.progress.next_save, plan.env_steps)
        return due or self.stop.pending or (counters.iteration + 1) % DRAIN_ITERATIONS == 0

    def _keep_boundary(self) -> None:
        """Hold this boundary in memory when the coming iteration may be too long to wait for on a signal."""
        session, limit = self.session, self.session.config.train.grace_period / 4
        saved = self.progress.saved_at == session.counters.env_steps
        if not session.resumable and not saved:
            return  # the last one that can be resumed from stays
        per_iteration = session.rollout.n_steps * session.plan.n_envs
        due = session.counters.env_steps + per_iteration >= self.progress.cadence.next_at
        expected = self.iteration_seconds
        if due and not self.evaluations.beside:  # waiting for one beside training ends at once on a signal
            expected += self.evaluations.expected_seconds(self.iteration_seconds / per_iteration)
        long = session.reset_every is not None or (expected > limit and session.counters.iteration > 0)
        self.boundary = self._pack(self.rows.last) if long and not saved else None
        self.boundary_steps = session.counters.env_steps, session.counters.vec_steps
        # Where nothing would be lost, because the boundary is on disk or nothing was learnt yet, a signal need not wait.
        self.stop.keeps_boundary = long or saved or session.counters.iteration == 0

    def _log(self, row: Row, *, amends: int | None = None) -> None:
        try:
            if amends is None:
                self.sink.write(row)
            else:
                self.sink.amend(amends, row)
        except OSError as error:
            raise GymnastError(
                f"The metrics of run {self.run.id} cannot be written ('{self.run.metrics_path}'): "
                f"{error.strerror or error}. Free some space, then go on with: gymnast resume {self.run.id}"
            ) from error

    def _beat(self) -> None:
        """Write the status; a full disk must not end a training over it."""
        try:
            self.run.update(**self._status())
            self.beats = True
        except GymnastError as error:
            if self.beats:
                self.reporter.warn(str(error))
            self.beats = False

    def _warn_if_identical(self) -> None:
        """Copies of an env that all do the same add nothing (RUN-11)."""
        rollout = self.session.rollout
        if rollout.n_envs == 1:
            return
        obs = rollout.host_obs()
        arrays = [*(obs.values() if isinstance(obs, dict) else [obs])]
        arrays.append(rollout.reward)  # a bandit always shows the same, and pays by chance
        if all((a[: rollout.length] == a[: rollout.length, :1]).all() for a in arrays):
            self.reporter.warn(
                f"All {rollout.n_envs} envs gave identical rollouts: the env is deterministic and so is the policy. "
                "More copies add nothing; set env.n_envs=1 or make the env depend on its seed."
            )

    def _keep_earlier(self, job: Job, metrics: Row, best: bool) -> None:
        """A result about earlier weights goes to their row; if it is the best, exactly their checkpoint is written."""
        self._log(metrics, amends=job.env_steps)
        if best and job.packed is not None:
            packed = checkpoint.with_metrics(job.packed, metrics)
            with self.timer.stage("checkpoint"):
                self.saver.save(packed, best=True, latest=False, metrics_file=self.run.metrics_path)

    def _settle(self) -> str:
        """The budget is spent. What an interrupted run still had to judge is judged now."""
        if not self.evaluations.jobs:
            return "budget spent"
        row = dict(self.rows.last)
        reason = self.judge.take(row, wait=True, written=True)
        if self.evaluations.jobs:
            return self._interrupt()
        self._save(row | self.judge.late, best=False)
        return reason or "budget spent"

    def _keep(self, row: Row, *, save: bool) -> None:
        """Checkpoint when due, when it is the best so far, or when asked."""
        progress, env_steps = self.progress, self.session.counters.env_steps
        evaluated = row.get("eval/return_mean") is not None
        resumable = self.session.resumable
        due = env_steps >= progress.next_save and resumable
        if due:
            progress.next_save = env_steps + self.session.plan.checkpoint_every
        score = score_of(row) if evaluated else row.get("rollout/return_mean")
        best = progress.improved_by(score, evaluated=evaluated) and (evaluated or due or save)
        if not (due or best or save or (self.stop.pending and resumable)):
            return
        if best:
            progress.note_best(score, env_steps, evaluated=evaluated)
        with self.timer.stage("checkpoint"):
            self._save(row, best=best, latest=resumable or save)

    def _save(self, row: Row, *, best: bool, latest: bool = True) -> None:
        session, run = self.session, self.run
        if not latest and self.boundary is not None:
            # Weights between two resets of the envs: where the run can go on from must be on disk before them.
            self._save_boundary()
        self.saver.save(self._pack(row), best=best, metrics_file=run.metrics_path, latest=latest)
        if latest:
            self.progress.saved_at = session.counters.env_steps
        self._beat()
        index.upsert(run)

    def _save_boundary(self) -> None:
        """Write the boundary that is kept in memory, unless a newer one is on disk."""
        steps, _ = self.boundary_steps
        if self.boundary is not None and self.progress.saved_at < steps:
            self.saver.save(self.boundary, best=False, metrics_file=self.run.metrics_path)
            self.progress.saved_at = steps
        self.boundary = None

    def _pack(self, row: Row) -> checkpoint.Packed:
        session = self.session
        counters = {**asdict(session.counters), "seconds": session.counters.seconds + self.timer.wall()}
        jobs = self.evaluations.state(session.counters.env_steps)
        state = {"session": session.state(), "loop": {**self.progress.state(), "jobs": jobs}}
        return checkpoint.pack(session.counters.env_steps, policy_tensors(session.policy), state, row, counters)

    def _leave_at_boundary(self) -> TrainResult:
        """Stopped in the middle of an iteration: the boundary before it is what the run keeps."""
        self.stop.disarm()
        progress, (steps, vec_steps) = self.progress, self.boundary_steps
        reason = f"interrupted ({self.stop.name}) in iteration {self.session.counters.iteration + 1}"
        try:
            self._save_boundary()
            self.saver.close()
        finally:  # a second signal does not wait for the disk, but the run still says how it ended
            self.run.finish("interrupted", reason, **self._status() | {"env_steps": steps, "vec_steps": vec_steps})
        index.upsert(self.run)
        seconds = self.session.counters.seconds + self.timer.wall()
        result = TrainResult(self.run, reason, progress.solved, None, steps, vec_steps, seconds, interrupted=True)
        self.reporter.finished(result, self.timer)
        return result

    def _status(self) -> dict[str, Any]:
        counters, progress = self.session.counters, self.progress
        status: dict[str, Any] = {
            "env_steps": counters.env_steps,
            "vec_steps": counters.vec_steps,
            "solved": progress.solved,
            "best_return": progress.best if progress.best_is_evaluated else None,
            "wall_seconds": counters.seconds + self.timer.wall(),
        }
        if progress.evaluation is not None:  # until a resumed run is judged again, what was known of it holds
            status["last_return"] = progress.evaluation.mean
        return status

    def _finish(self, reason: str) -> TrainResult:
        self.stop.disarm()
        self.stop.keeps_boundary = False
        counters, progress = self.session.counters, self.progress
        with self.timer.stage("checkpoint"):
            if progress.saved_at != counters.env_steps:
                self._save(self.rows.last, best=False)
            self.saver.close()
        if self.saver.failure is not None:
            raise CheckpointError(f"The run ended ({reason}), but its end is not saved. {self.saver.failure}")
        interrupted = self.interrupted
        self.run.finish("interrupted" if interrupted else "finished", reason, **self._status())
        index.upsert(self.run)
        evaluation = None if interrupted else progress.evaluation
        seconds = counters.seconds + self.timer.wall()
        solved = progress.solved
        result = TrainResult(
            self.run,
            reason,
            solved,
            evaluation,
            counters.env_steps,
            counters.vec_steps,
            seconds,
            interrupted,
            None if evaluation is None else progress.evaluated_at,
        )
        self.reporter.finished(result, self.timer)
        return result

    def _fail(self, error: BaseException) -> None:
        state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        words = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {words[0] if words else ''}".rstrip(": ")
        with contextlib.suppress(GymnastError):  # the first fault is the one to hear of
            self.run.finish(state, reason, **self._status())
        index.upsert(self.run)
