"""What follows from evaluations during training: rows, the best checkpoint, and whether the run ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gymnast.evaluation.evaluate import Evaluation
from gymnast.runs.checkpoint import Packed
from gymnast.timing import StageTimer
from gymnast.training.evaluations import Evaluations, Job
from gymnast.training.progress import Progress, score_of
from gymnast.training.report import Reporter
from gymnast.training.rows import Row
from gymnast.training.session import Session
from gymnast.training.signals import StopRequest
from gymnast.training.stopping import StopRules


@dataclass
class Judge:
    """Called at every iteration boundary."""

    session: Session
    evaluations: Evaluations
    progress: Progress
    rules: StopRules
    reporter: Reporter
    timer: StageTimer
    stop: StopRequest
    pack: Callable[[Row], Packed]
    """Makes the checkpoint of the current boundary."""
    keep: Callable[[Job, Row, bool], None]
    """Takes a result about earlier weights, and whether it is the best so far."""
    late: Row = field(default_factory=dict)
    """Metrics of earlier weights that have arrived at this boundary."""

    def __call__(self, row: Row, *, spent: bool) -> str | None:
        """Take the evaluations that are ready, begin one when it is due; returns why the run ends, if it does."""
        counters = self.session.counters
        due = self.progress.cadence.due(counters.env_steps, row["rollout/return_mean"])
        self.late = {}
        reason = self.take(row, wait=due)  # never more than one behind
        if reason is not None:
            return reason  # the weights that ended the run have been judged, and their checkpoint is the best
        if due:
            self._evaluate(row)
        reason = self.rules.reason(row)
        if spent or reason:
            # The weights a run ends with are always judged.
            if self.progress.evaluated_at != counters.env_steps and not due:
                self._evaluate(row)
            reason = self.take(row, wait=True) or reason or self.rules.reason(row)
        return reason

    def _evaluate(self, row: Row) -> None:
        """Judge the current weights, or begin to: the result then comes out of `take`."""
        counters = self.session.counters
        turn = counters.evaluations
        counters.evaluations += 1
        with self.timer.stage("eval"):
            if self.evaluations.beside:
                self.evaluations.submit(turn, counters.env_steps, lambda: self.pack(row))
                return
            with self.reporter.activity("evaluating", self.session.config.eval.episodes) as tick:
                evaluation = self.evaluations.here(self.session.policy, turn, tick)
        row |= self._judged(evaluation, counters.env_steps)

    def take(self, row: Row, *, wait: bool, written: bool = False) -> str | None:
        """Results of evaluations beside training; a result about earlier weights may end the run.

        `written` says that `row` is in the metrics already.
        """
        while True:
            with self.timer.stage("eval"):
                taken = self._next_result(wait)
            if taken is None:
                return None
            job, evaluation = taken
            metrics = self._judged(evaluation, job.env_steps)
            row["train/solved"] = metrics["train/solved"]
            if job.env_steps == row["env_steps"] and not written:
                row |= metrics
                continue
            score = score_of(metrics)
            best = self.progress.improved_by(score, evaluated=True)
            if best:
                self.progress.note_best(score, job.env_steps, evaluated=True)
            self.late |= metrics
            self.keep(job, metrics, best)
            reason = self.rules.reason(metrics)
            if reason is not None:
                self.evaluations.cancel()
                return reason

    def _next_result(self, wait: bool) -> tuple[Job, Evaluation] | None:
        if not wait or not self.evaluations.jobs:
            return self.evaluations.take()
        step, episodes = self.evaluations.jobs[0].env_steps, self.session.config.eval.episodes
        with self.reporter.activity(f"evaluating step {step:,}", episodes) as tick:
            return self.evaluations.take(patient=lambda: not self.stop.pending, on_episode=tick)

    def _judged(self, evaluation: Evaluation, env_steps: int) -> Row:
        """Note a result; its metrics belong to the row of the weights it is about."""
        progress = self.progress
        progress.evaluation, progress.evaluated_at = evaluation, env_steps
        row: Row = dict(evaluation.metrics())
        solved = self.rules.is_solved(row)
        progress.solved = progress.solved or solved
        row["train/solved"] = float(progress.solved)
        self.reporter.evaluated(env_steps, evaluation, solved)
        return row
