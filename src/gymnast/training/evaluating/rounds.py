"""What happens about evaluations at an iteration boundary: results are taken in, one may begin, and the run may end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from gymnast.config.plan import FULL_EPISODES
from gymnast.config.schema import RunConfig
from gymnast.envs.time_limits import time_limit_of
from gymnast.errors import EnvError
from gymnast.evaluation.evaluate import Evaluation
from gymnast.training.evaluating.cadence import EvalCadence, Extent
from gymnast.training.evaluating.jobs import Evaluations, Job
from gymnast.training.evaluating.setup import eval_env_config
from gymnast.training.evaluating.standing import Standing
from gymnast.training.keeping.callbacks import Evaluated
from gymnast.training.keeping.checkpoints import Checkpoints
from gymnast.training.keeping.run_log import RunLog
from gymnast.training.keeping.stopping import StopRules
from gymnast.training.trainer import Row, Trainer


@dataclass
class Boundary:
    """What is known at a boundary, and what its evaluations add to it."""

    row: Row
    written: bool = False
    """Whether its row is in the metrics already: what becomes known of it is written as an amendment."""
    measured: Row = field(default_factory=dict)
    """What was found out of the weights of this boundary, for its row."""
    late: Row = field(default_factory=dict)
    """What was found out here of earlier weights."""
    evaluated: list[Evaluated] = field(default_factory=list)
    """The evaluations that ended here."""
    reason: str | None = None
    """Why the run ends here."""

    def add(self, metrics: Row) -> None:
        """Metrics that belong to this boundary's row."""
        self.row = {**self.row, **metrics}
        self.measured |= metrics


class EvaluationRounds:
    """Looks at every boundary when to evaluate, what came of it, and whether that ends the run."""

    def __init__(
        self,
        trainer: Trainer,
        evaluations: Evaluations,
        cadence: EvalCadence,
        standing: Standing,
        rules: StopRules,
        checkpoints: Checkpoints,
        log: RunLog,
    ) -> None:
        self.evaluations, self.cadence, self.standing, self.rules = evaluations, cadence, standing, rules
        self._trainer, self._checkpoints, self._log = trainer, checkpoints, log
        checkpoints.further = self.state
        checkpoints.open = lambda: [job.packed for job in evaluations.jobs if job.packed is not None]

    def enter_stage(self, config: RunConfig, rules: StopRules, *, anew: bool = True) -> None:
        """From now on evaluations are of this config's env; `anew` forgets what they have shown of the last one."""
        self.rules = rules
        self.evaluations.enter_stage(config)
        if self.cadence.budget is not None:
            self.cadence.budget.solved_at = config.spec.solved_at
            self.cadence.budget.time_limit = time_limit_of(eval_env_config(config)[0])
        if anew:
            self.standing.forget()

    @property
    def is_open(self) -> bool:
        """Whether some evaluation has no result yet."""
        return bool(self.evaluations.jobs)

    def look(self, row: Row, *, spent: bool) -> Boundary:
        """Take the results that are there, and evaluate when it is time; `spent` says that the budget is."""
        at, cadence = Boundary(row), self.cadence
        asks = cadence.asks(self._trainer.counters.env_steps, row.get("rollout/return_mean"))
        # Where the costs of earlier evaluations decide about the next, they must be known by then.
        ends = cadence.budget is not None and (spent or self.rules.reason(row) is not None)
        self._take(at, wait=asks or ends)  # never more than one behind
        if at.reason is not None:
            return at  # the weights that ended the run have been evaluated, and their checkpoint is the best
        if cadence.budget is not None and self.is_open and (asks or ends):
            cadence.undecided = True  # a signal did not wait for the result: `catch_up` does after a resume
            return at
        cadence.undecided = False
        self._decide(at, spent=spent)
        return at

    def catch_up(self, row: Row, *, spent: bool) -> Boundary:
        """Decide what a signal left open at the boundary a resumed run begins at."""
        at = Boundary(row, written=True)
        self._take(at, wait=True)
        if at.reason is None and not self.is_open:
            self.cadence.undecided = False
            self._decide(at, spent=spent)
        return at

    def settle(self, row: Row) -> Boundary:
        """Wait for what is still open when the budget is spent."""
        at = Boundary(row, written=True)
        self._take(at, wait=True)
        return at

    def _decide(self, at: Boundary, *, spent: bool) -> None:
        steps, row = self._trainer.counters.env_steps, at.row
        due = self.cadence.due(steps, row.get("rollout/return_mean"), row.get("rollout/length_mean"))
        if due:
            self._evaluate(at)
        at.reason = self.rules.reason(at.row)
        if spent or at.reason:
            # The weights a run ends with are always evaluated.
            if self.standing.evaluated_at != steps and not due:
                self._evaluate(at)
            found, at.reason = at.reason, None
            self._take(at, wait=True)
            at.reason = at.reason or found or self.rules.reason(at.row)

    def _evaluate(self, at: Boundary) -> None:
        """Evaluate the current weights, or begin to: the result then comes out of `_take`."""
        counters, evaluations = self._trainer.counters, self.evaluations
        job = Job(counters.evaluations, counters.env_steps, self._extent(at.row))
        counters.evaluations += 1
        if evaluations.next_to_training:
            evaluations.submit(job, lambda: self._checkpoints.pack(at.row))
            return
        try:
            evaluation = evaluations.here(self._trainer.policy, job.turn, job.extent)
        except EnvError:
            self.cadence.undecided = True  # the weights are kept, and evaluated after a resume
            raise
        metrics = self._noted(at, evaluation, job.env_steps)
        if at.written:
            job.packed = self._checkpoints.pack(at.row)
            self._amend(at, job, metrics)
        at.add(metrics)

    def _extent(self, row: Row) -> Extent:
        """How much to play now. That few episodes solve the env is confirmed on many, as long as it is news."""
        config, threshold = self._trainer.config.eval, self.rules.threshold
        extent = self.cadence.extent(config.episodes, row.get("rollout/length_mean"), self._trainer.counters.vec_steps)
        adapted = config.episodes is None and extent.episodes < FULL_EPISODES
        if not adapted or threshold is None or self.standing.solved:
            return extent
        return replace(extent, confirm_at=threshold)

    def _take(self, at: Boundary, *, wait: bool) -> None:
        """Results of evaluations next to training; one about earlier weights may end the run."""
        while (taken := self.evaluations.take(wait=wait)) is not None:
            job, evaluation = taken
            metrics = self._noted(at, evaluation, job.env_steps)
            at.add({"train/solved": metrics["train/solved"]})
            if job.env_steps == at.row["env_steps"] and not at.written:
                at.add(metrics)
                continue
            self._amend(at, job, metrics)
            at.reason = self.rules.reason(metrics)
            if at.reason is not None:
                self.evaluations.cancel()
                return

    def _amend(self, at: Boundary, job: Job, metrics: Row) -> None:
        """Give a result to the row of its weights, which is in the metrics already."""
        at.late |= metrics
        self._log.amend(job.env_steps, metrics)
        self._checkpoints.keep_earlier(job.packed, metrics)

    def _noted(self, at: Boundary, evaluation: Evaluation, env_steps: int) -> Row:
        """Take a result in; its metrics belong to the row of the weights it is about."""
        if self.cadence.budget is not None:
            self.cadence.budget.note(evaluation)
        row: Row = dict(evaluation.metrics())
        verdict = self.rules.verdict(row, env_steps)
        vec_steps = env_steps // self._trainer.plan.n_envs
        self.standing.note(
            evaluation, env_steps, verdict, vec_steps=vec_steps, seconds=at.row.get("time/seconds") or 0.0
        )
        row["train/solved"] = float(self.standing.solved)
        self.evaluations.report(env_steps, evaluation, verdict)
        at.evaluated.append(Evaluated(env_steps, evaluation, verdict))
        return row

    def state(self) -> dict[str, Any]:
        """For the checkpoint of this boundary."""
        jobs = self.evaluations.state(self._trainer.counters.env_steps)
        return {"cadence": self.cadence.state(), "jobs": jobs, **self.standing.state()}
