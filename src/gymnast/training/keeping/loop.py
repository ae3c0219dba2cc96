"""The run loop: one iteration after another until the budget, a stop rule or a signal ends it.

It decides when to evaluate, to save and to stop. What is learned in an iteration, and from what, is the trainer's. A
checkpoint always describes an iteration boundary, so everything here happens between two iterations or inside one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from gymnast.errors import EnvError, GymnastError, NonFiniteError
from gymnast.metrics.catalogue import Catalogue
from gymnast.runs import index
from gymnast.runs.housekeeping import discard
from gymnast.timing import StageTimer
from gymnast.training.evaluating.rounds import Boundary, EvaluationRounds
from gymnast.training.keeping.callbacks import Listeners
from gymnast.training.keeping.checkpoints import Checkpoints
from gymnast.training.keeping.failures import memory_explained, with_dump
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.keeping.run_log import RunLog
from gymnast.training.keeping.signals import StopRequest
from gymnast.training.showing.behind import left_unshown
from gymnast.training.showing.ending import report_run, show_run, time_for_films
from gymnast.training.stages.promotion import Stages
from gymnast.training.trainer import Row, Trainer

DRAIN_ITERATIONS = 50
"""How often envs that run ahead of learning are waited for, so that an interrupted run repeats little."""


class Loop:
    """Keeps one run, whatever trains in it."""

    def __init__(
        self,
        trainer: Trainer,
        log: RunLog,
        checkpoints: Checkpoints,
        rounds: EvaluationRounds,
        stop: StopRequest,
        reporter: Reporter,
        timer: StageTimer,
        *,
        fresh_root: bool = False,
        listeners: Listeners | None = None,
        leaves: bool = False,
        stages: Stages | None = None,
    ) -> None:
        """`fresh_root` says that the folder of all runs was made for this one; `leaves`, that the process ends with this run.

        `stages` are those of the run's plan.
        """
        self.stages = stages
        self.listeners = listeners or Listeners()
        self.trainer = trainer
        self.log = log
        self.checkpoints = checkpoints
        self.rounds = rounds
        self.stop = stop
        self.reporter = reporter
        self.timer = timer
        self._fresh_root, self._leaves = fresh_root, leaves
        self._resets = trainer.about.reset_every is not None
        self._iteration_seconds = 0.0
        self._interrupted = False

    # ---- the run ---------------------------------------------------------------------------------------------------

    def run(self, catalogue: Catalogue, before: Callable[[], None] | None = None) -> TrainResult:
        """Iterate until something ends the run, then leave it evaluated, saved and reported.

        `before` is done before the first iteration; nothing is learned in it.
        """
        trainer = self.trainer
        try:
            with memory_explained(trainer.config):
                trainer.start()
                self.listeners.start(self.log.run)
                if before is not None:
                    self.stop.keeps_boundary = True  # nothing was learned yet: a signal need not wait
                    before()
                with self.reporter.display(catalogue, trainer.config, self.log.run.id):
                    reason = self._iterate()
                    self._conclude_stages()
                self.log.no_more_iterations()
                return self._finish(reason)
        except BaseException as error:
            left = self._left_by(error)
            if left is not None:
                return left
            raise
        finally:
            self.checkpoints.release()
            self.log.close()

    def _iterate(self) -> str:
        """Run all iterations; returns why they ended."""
        trainer = self.trainer
        if self.rounds.cadence.undecided and (ended := self._catch_up()) is not None:
            return ended
        while not self._is_spent:
            row = self._learn()
            reason = self._look(row)
            self.reporter.update(self.log.history, time.perf_counter(), self.log.marks)
            if self.log.beat_is_due():
                self.checkpoints.rescue()
                self.log.beat(self.status())
            unfinished = self.rounds.is_open
            if reason is not None and not unfinished:
                return reason
            if self.listeners.stop_reason is not None and trainer.stands:
                return self._end_as_asked(self.listeners.stop_reason)
            nothing_left = self._is_spent and not unfinished
            if self.stop.pending and not nothing_left:
                if not trainer.stands:
                    continue  # one iteration more, after which no env is ahead
                if not trainer.resumable and not self.checkpoints.is_saved:
                    # What came after the last reset of the envs is repeated by an exact resume; an inexact one, and
                    # whoever plays the policy, has the newest weights.
                    self.checkpoints.save(self.log.last, latest=False, newest=True)
                    raise KeyboardInterrupt
                return self._interrupt()
        return self._settle()

    @property
    def _is_spent(self) -> bool:
        """Whether the budget is."""
        return self.trainer.counters.env_steps >= self.trainer.plan.env_steps

    # ---- one iteration ---------------------------------------------------------------------------------------------

    def _learn(self) -> Row:
        """One iteration of the trainer; returns its row."""
        trainer = self.trainer
        watched = self.log.iteration()
        self._hold_boundary()
        began = time.perf_counter()
        if trainer.counters.iteration == 0 and os.environ.get("GYMNAST_TRACE_STARTUP"):
            print(f"first-env-step {time.time():.4f}", file=sys.stderr, flush=True)
        vec_steps = trainer.steps_per_iteration // trainer.plan.n_envs
        with watched, self.reporter.activity(f"collecting{self.rounds.evaluations.note()}", vec_steps) as tick:
            try:
                measured = trainer.iterate(self.timer, tick, drain=self._drains())
            except NonFiniteError as error:
                raise with_dump(error, trainer, self.log.run.folder) from error
        self._iteration_seconds = time.perf_counter() - began
        if self.stages is not None:
            measured = {**measured, **self.stages.metrics()}
        return self.log.completed(measured, solved=self.rounds.standing.solved)

    def _look(self, row: Row) -> str | None:
        """Everything that is done at the boundary after an iteration; returns why the run ends, if it does."""
        try:
            for sentence in self.trainer.concerns():
                self.reporter.warn(sentence)
            boundary = self.rounds.look(row, spent=self._is_spent or self._stage_is_spent)
        except EnvError:
            self._keep_weights(row)
            raise
        row = {**row, **boundary.measured}
        if found := self.trainer.histograms():
            self.log.histograms(self.trainer.counters.env_steps, found)
        self.log.write(row, boundary.late)
        self.listeners.evaluations(boundary.evaluated)
        self.listeners.iteration(row)
        reason = boundary.reason
        if self._promotes(boundary):
            self._promote(row, boundary)
            return None
        if reason is None and self.trainer.config.alerts.strict:
            reason = self.log.fault
        asked = self._is_spent or reason is not None
        with self.timer.stage("checkpoint"):
            if self.checkpoints.keep(row, asked=asked, stopping=self.stop.pending):
                self._show_saved()
        self.listeners.checkpoints(self.checkpoints.landed())
        return reason

    @property
    def _stage_is_spent(self) -> bool:
        """Whether the stage of a plan has had its steps."""
        return self.stages is not None and self.stages.spent

    def _promotes(self, boundary: Boundary) -> bool:
        """Whether the next stage of the plan begins here."""
        return self.stages is not None and not self._is_spent and self.stages.ends(boundary.reason)

    def _promote(self, row: Row, boundary: Boundary) -> None:
        """On to the next stage of the plan; `row` is that of this boundary, which is in the metrics already."""
        assert self.stages is not None
        evaluation = boundary.evaluated[-1].evaluation if boundary.evaluated else None
        found = self.stages.promote(row, evaluation)
        self.log.amend(self.trainer.counters.env_steps, found)
        self._show_saved()
        self.listeners.checkpoints(self.checkpoints.landed())

    def _conclude_stages(self) -> None:
        """How good the last weights are on all stages of the plan, while a signal has not asked for an end."""
        if self.stages is None or self._interrupted or self.stop.pending:
            return
        standing = self.rounds.standing
        current = standing.evaluated_at == self.trainer.counters.env_steps
        found = self.stages.conclude(solved=standing.solved, evaluated=standing.evaluation if current else None)
        self.log.amend(self.trainer.counters.env_steps, found)

    def _drains(self) -> bool:
        """Whether envs must pause at the next boundary, because the whole run is saved there or ends."""
        counters, plan = self.trainer.counters, self.trainer.plan
        steps = counters.env_steps + self.trainer.steps_per_iteration
        due = steps >= min(self.checkpoints.kept.next_save, plan.env_steps)
        return due or self.stop.pending or (counters.iteration + 1) % DRAIN_ITERATIONS == 0

    def _hold_boundary(self) -> None:
        """Hold this boundary in memory when the coming iteration may be too long to wait for on a signal."""
        trainer, saved = self.trainer, self.checkpoints.is_saved
        if not trainer.resumable and not saved:
            return  # the last one that can be resumed from stays
        new = trainer.counters.iteration == 0
        long = self._resets or (not new and self._expected_seconds() > trainer.config.train.grace_period / 4)
        self.checkpoints.hold(self.log.last, in_memory=long)
        # Where nothing would be lost, because the boundary is on disk or nothing was learned yet, a signal need not wait.
        self.stop.keeps_boundary = long or saved or new

    def _expected_seconds(self) -> float:
        """Of the coming iteration, with the evaluation that may follow it."""
        trainer, cadence, evaluations = self.trainer, self.rounds.cadence, self.rounds.evaluations
        per_iteration = trainer.steps_per_iteration
        due = trainer.counters.env_steps + per_iteration >= cadence.next_at
        if not due or evaluations.next_to_training:  # waiting for one next to training ends at once on a signal
            return self._iteration_seconds
        config = trainer.config
        worst = cadence.worst_steps(config.eval.episodes, config.spec.horizon)
        return self._iteration_seconds + evaluations.expected_seconds(worst * self._iteration_seconds / per_iteration)

    # ---- resumed, interrupted, spent -------------------------------------------------------------------------------

    def _catch_up(self) -> str | None:
        """What a signal left undecided at the boundary this attempt begins at; returns why the run ends, if it does."""
        boundary = self.rounds.catch_up(self.log.last, spent=self._is_spent or self._stage_is_spent)
        self.listeners.evaluations(boundary.evaluated)
        if self._promotes(boundary):
            self._promote({**self.log.last, **boundary.measured, **boundary.late}, boundary)
            return None
        if self.stop.pending and (self.rounds.is_open or not self._is_spent):
            return self._interrupt()
        if boundary.reason is None and not self._is_spent:
            return None
        self._save({**self.log.last, **boundary.measured, **boundary.late})
        return boundary.reason or "budget spent"

    def _settle(self) -> str:
        """The budget is spent. What an interrupted run still had to evaluate is evaluated now."""
        if not self.rounds.is_open:
            return "budget spent"
        boundary = self.rounds.settle(self.log.last)
        self.listeners.evaluations(boundary.evaluated)
        if self.rounds.is_open:
            return self._interrupt()
        self._save({**self.log.last, **boundary.measured, **boundary.late})
        return boundary.reason or "budget spent"

    def _end_as_asked(self, reason: str) -> str:
        """A callback ends the run: its last weights are evaluated, as ever."""
        boundary = self.rounds.catch_up(self.log.last, spent=True)
        self.listeners.evaluations(boundary.evaluated)
        if self.rounds.is_open:  # a signal did not wait for the result
            return self._interrupt()
        self._save({**self.log.last, **boundary.measured, **boundary.late})
        return reason

    def _interrupt(self) -> str:
        self._interrupted = True
        return f"interrupted ({self.stop.name})"

    def _keep_weights(self, row: Row) -> None:
        """An env failed at a boundary: what was learned until then can be gone on from under other settings."""
        if not self.trainer.resumable:
            return
        with contextlib.suppress(GymnastError):  # the first fault is the one to report
            self.log.write(row)
            self._save(row)

    def _save(self, row: Row) -> None:
        self.checkpoints.save(row)
        self._show_saved()

    def _show_saved(self) -> None:
        """In the status and in the index."""
        self.log.beat(self.status())
        index.upsert(self.log.run)

    # ---- the end ---------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The progress, for the run's status."""
        counters = self.trainer.counters
        best_return, best_at = self.checkpoints.kept.best.evaluation
        return {
            "env_steps": counters.env_steps,
            "vec_steps": counters.vec_steps,
            "best_return": best_return,
            "best_at": best_at,
            "wall_seconds": counters.seconds + self.timer.wall(),
            "action_choices": ",".join(map(str, self.trainer.about.choices)) or None,
            **self.rounds.standing.status(),
        }

    def _finish(self, reason: str) -> TrainResult:
        self.stop.disarm()
        self.stop.keeps_boundary = False
        counters, standing = self.trainer.counters, self.rounds.standing
        with self.timer.stage("checkpoint"):
            self.checkpoints.rescue()
            if not self.checkpoints.is_saved:
                self._save(self.log.last)
            self.checkpoints.finish(reason)
        self.log.end("interrupted" if self._interrupted else "finished", reason, self.status())
        evaluation = None if self._interrupted else standing.evaluation
        best, best_at = self.checkpoints.kept.best.evaluation
        result = TrainResult(
            run=self.log.run,
            stop_reason=reason,
            solved=standing.solved,
            evaluation=evaluation,
            env_steps=counters.env_steps,
            vec_steps=counters.vec_steps,
            seconds=counters.seconds + self.timer.wall(),
            interrupted=self._interrupted,
            evaluated_at=None if evaluation is None else standing.evaluated_at,
            verdict=standing.verdict,
            best=best,
            best_at=best_at,
            alerts=sum(alert.severity != "info" for alert in self.log.watch.alerts),
        )
        self.reporter.result(result)
        # An evaluation that a signal did not wait for may have met an env that hangs: an episode of a film would hang too.
        self._show(result, films=not self.rounds.is_open)
        self.reporter.finished(result, self.timer)
        self._tell_end(result)
        return result

    def _show(self, result: TrainResult, *, films: bool = True) -> None:
        """Film, tabulate and report the run, which is saved and told by now: nothing here can spoil it."""
        run, config, note = self.log.run, self.trainer.config, self.reporter.note
        interrupted_before = self.stop.name
        if films:
            expected = self.log.history.last("eval/length_mean") or self.log.history.last("rollout/length_mean")
            if self._leaves:
                result.unshown = left_unshown(run, config, ran=result.seconds, expected=expected)
        if films and result.unshown is None:
            show_run(
                run,
                config,
                self.timer,
                seconds=time_for_films(config, result.seconds),
                expected=expected,
                hurry=lambda: self.stop.name != interrupted_before,
                note=note,
            )
            if "video" in self.timer.seconds:
                with contextlib.suppress(GymnastError):  # a full disk
                    self.log.conclude({f"time/{name}": share for name, share in self.timer.split().items()})
        report_run(run, config, note)

    def _tell_end(self, result: TrainResult | None) -> None:
        self.listeners.checkpoints(self.checkpoints.landed())
        self.listeners.end(result)

    def _left_by(self, error: BaseException) -> TrainResult | None:
        """Leave the run in order after an error; a result where it was only interrupted."""
        checkpoints = self.checkpoints
        saved = checkpoints.held is not None or checkpoints.kept.saved_at >= 0
        new = self.trainer.counters.iteration == 0 and checkpoints.kept.saved_at < 0
        if isinstance(error, KeyboardInterrupt) and self.stop.keeps_boundary and saved and not new:
            return self._leave_at_boundary()
        checkpoints.close()
        dumped = isinstance(error, NonFiniteError) and error.dump is not None
        if new and not dumped:
            discard(self.log.run, with_root=self._fresh_root)  # nothing was learned: leave nothing half-written behind
        else:
            self._fail(error)
        self._tell_end(None)
        return None

    def _leave_at_boundary(self) -> TrainResult:
        """Stopped in the middle of an iteration: the boundary before it is what the run keeps."""
        self.stop.disarm()
        env_steps, vec_steps = self.checkpoints.boundary_steps
        counters = self.trainer.counters
        newest = self.checkpoints.weights_at
        reason = f"interrupted ({self.stop.name})"
        if newest != counters.env_steps:
            reason += f" in iteration {counters.iteration + 1}"
        try:
            self.checkpoints.rescue()
            self.checkpoints.write_held()
            self.checkpoints.close()
        finally:  # a second signal does not wait for the disk, but the run still says how it ended
            self.log.end("interrupted", reason, self.status() | {"env_steps": env_steps, "vec_steps": vec_steps})
        result = TrainResult(
            run=self.log.run,
            stop_reason=reason,
            solved=self.rounds.standing.solved,
            evaluation=None,
            env_steps=env_steps,
            vec_steps=vec_steps,
            seconds=counters.seconds + self.timer.wall(),
            interrupted=True,
            weights_at=newest if newest > env_steps else None,
        )
        self.reporter.result(result)
        self._show(result, films=False)
        self.reporter.finished(result, self.timer)
        self._tell_end(result)
        return result

    def _fail(self, error: BaseException) -> None:
        state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        words = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {words[0] if words else ''}".rstrip(": ")
        with contextlib.suppress(GymnastError):  # the first fault is the one to report
            self.log.run.finish(state, reason, **self.status())
        index.upsert(self.log.run)
        report_run(self.log.run, self.trainer.config, self.reporter.note)
