"""From one stage of a plan to the next: old stages are evaluated, the weights are kept, and everything moves on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gymnast.config.plan import FULL_EPISODES
from gymnast.config.tasks import PlanConfig
from gymnast.evaluation.evaluate import SHARED_METRICS, Evaluation
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.verdict import shown
from gymnast.runs import stages
from gymnast.timing import StageTimer
from gymnast.training.evaluating.cadence import Extent
from gymnast.training.evaluating.evaluator import Evaluator
from gymnast.training.evaluating.rounds import EvaluationRounds
from gymnast.training.keeping.checkpoints import Best, Checkpoints
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.stopping import SOLVED, make_rules
from gymnast.training.stages.curriculum import Curriculum
from gymnast.training.trainer import Row, Trainer

TURN = 3_000_000
"""Numbers of evaluations of all stages begin here: `CONFIRMING` ones lie below."""


class Stages:
    """Takes one run through the stages of its plan."""

    def __init__(
        self,
        curriculum: Curriculum,
        plan: PlanConfig,
        trainer: Trainer,
        rounds: EvaluationRounds,
        checkpoints: Checkpoints,
        reporter: Reporter,
        timer: StageTimer,
    ) -> None:
        self.curriculum = curriculum
        self._plan, self._trainer, self._rounds = plan, trainer, rounds
        self._checkpoints, self._reporter, self._timer = checkpoints, reporter, timer
        inner = checkpoints.further
        checkpoints.further = lambda: {**inner(), "stages": curriculum.state()}
        stages.write(checkpoints.run.folder, curriculum.records)

    @property
    def spent(self) -> bool:
        """Whether the stage has had its steps, and another one follows."""
        return self.curriculum.is_spent(self._trainer.counters.env_steps)

    def metrics(self) -> Row:
        """For every row: the stage it was trained in."""
        return {"train/stage": float(self.curriculum.number)}

    def ends(self, reason: str | None) -> bool:
        """Whether the stage ends at this boundary and the next one begins; `reason` is why the run would end."""
        if self.curriculum.next is None:
            return False
        return reason == SOLVED or (reason is None and self.spent)

    def promote(self, row: Row, evaluated: Evaluation | None) -> Row:
        """Evaluate the stages so far and the next one, keep these weights, and go on to the next stage.

        `evaluated` is what is known of this stage's weights at this boundary. Returns metrics for the row.
        """
        curriculum, steps = self.curriculum, self._trainer.counters.env_steps
        solved = self._rounds.standing.solved
        following = curriculum.next
        assert following is not None
        done = curriculum.record
        scores = self._evaluate([*self._before(), curriculum.name, following], evaluated)
        curriculum.end(steps, solved=solved, scores=scores)
        curriculum.begin_next(steps)
        self._say(done, following, solved=solved)
        self._trainer.enter_stage(following, fresh_optimizer=self._plan.optimizer == "fresh")
        self._rounds.enter_stage(curriculum.config, make_rules(curriculum.config, load_catalogue()))
        # From here on scores are of another task: the weights that begin it are the best until better ones are known.
        self._checkpoints.kept.best = Best(scores[following].score, steps, evaluated=True)
        metrics = {**metrics_of(scores), "train/solved": 0.0}  # which is about the last stage
        self._checkpoints.save({**row, **metrics}, best=True, master=done.name)
        stages.write(self._checkpoints.run.folder, curriculum.records)
        return metrics

    def conclude(self, *, solved: bool, evaluated: Evaluation | None) -> Row:
        """The run has ended in this stage: how good its last weights are on all stages. Returns metrics for the last row."""
        curriculum, steps = self.curriculum, self._trainer.counters.env_steps
        scores = self._evaluate([*self._before(), curriculum.name], evaluated)
        curriculum.end(steps, solved=solved, scores=scores)
        stages.write(self._checkpoints.run.folder, curriculum.records)
        self._reporter.say()
        for line in stages.aligned(stages.table(curriculum.records)):
            self._reporter.say(f"  {line}")
        return metrics_of(scores)

    def restore(self) -> None:
        """The curriculum was restored: evaluations are of its stage, and the file says what it says."""
        self._rounds.enter_stage(
            self.curriculum.config, make_rules(self.curriculum.config, load_catalogue()), anew=False
        )
        stages.write(self._checkpoints.run.folder, self.curriculum.records)

    def _before(self) -> list[str]:
        """All tasks before this one, also those that `plan.start` has left out."""
        names = list(self._plan.tasks)
        return names[: names.index(self.curriculum.name)]

    def _evaluate(self, names: Iterable[str], known: Evaluation | None) -> dict[str, Evaluation]:
        """The weights of this boundary on these stages; what is `known` of the present one is not played again."""
        found = {}
        for name in names:
            if name == self.curriculum.name and known is not None:
                found[name] = known
            else:
                found[name] = self._play(name)
        return found

    def _play(self, name: str) -> Evaluation:
        config = self.curriculum.config_of(name)
        extent = Extent(config.eval.episodes or FULL_EPISODES, steps=config.eval.steps)
        evaluator = Evaluator(config)
        try:
            with self._timer.stage("eval"), self._reporter.activity(f"evaluating {name}", extent.amount) as tick:
                return evaluator(self._trainer.policy, TURN + self.curriculum.number, extent, tick)
        finally:
            evaluator.close()

    def _say(self, done: stages.StageRecord, following: str, *, solved: bool) -> None:
        took = (done.ended or 0) - done.began
        how = "solved" if solved else "not solved"
        others = ", ".join(
            f"{name} {shown(score.mean, self._threshold(name))}"
            for name, score in done.scores.items()
            if name != done.name
        )
        self._reporter.say(
            f"stage {done.name} {how} after {took:,} env steps; on to {following}. The same weights elsewhere: {others}.",
            style="bold",
        )

    def _threshold(self, name: str) -> float | None:
        return self.curriculum.config_of(name).spec.solved_at


def metrics_of(scores: Mapping[str, Evaluation]) -> Row:
    """`eval.STAGE/return_mean` and its like."""
    found: Row = {}
    for name, evaluation in scores.items():
        for metric, value in evaluation.metrics().items():
            if metric in SHARED_METRICS:
                found[metric.replace("eval/", f"eval.{name}/", 1)] = value
    return found
