"""Which stage of a plan a run is in, when that one ends, and what each has come to."""

from __future__ import annotations

from typing import Any

from gymnast.config.schema import RunConfig
from gymnast.config.tasks import PlanConfig, task_thresholds, with_task
from gymnast.errors import CheckpointError
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.verdict import standard_error
from gymnast.runs.stages import Score, StageRecord, as_json, restored


class Curriculum:
    """The stages of one run. It decides nothing by a clock, so a resumed run goes the same way."""

    def __init__(self, config: RunConfig, plan: PlanConfig) -> None:
        self._config, self._plan = config, plan
        self._thresholds = task_thresholds(config)
        self.names = plan.stages
        self.records = [self._begun(self.names[0], 0)]

    def _begun(self, name: str, env_steps: int) -> StageRecord:
        return StageRecord(name, env_steps, self._thresholds[name])

    @property
    def record(self) -> StageRecord:
        """Of the stage that is trained on."""
        return self.records[-1]

    @property
    def name(self) -> str:
        """Of the stage that is trained on."""
        return self.record.name

    @property
    def number(self) -> int:
        """Of the stage that is trained on among all of the plan, from 1."""
        return list(self._plan.tasks).index(self.name) + 1

    @property
    def next(self) -> str | None:
        """The stage that comes after this one."""
        following = self.names[len(self.records) :]
        return following[0] if following else None

    @property
    def config(self) -> RunConfig:
        """Of a run on this stage alone, which is how everything but the loop sees it."""
        return self.config_of(self.name)

    def config_of(self, name: str) -> RunConfig:
        """Of a run on one stage alone; it is solved there unless another stage follows whatever `stop_when_solved` says."""
        config = with_task(self._config, name)
        train = config.train
        if name != self.names[-1]:
            train = train.model_copy(update={"stop_when_solved": True})
        evaluation = config.eval.model_copy(update={"mode": "inprocess"})
        return config.model_copy(update={"train": train, "eval": evaluation})

    def is_spent(self, env_steps: int) -> bool:
        """Whether the stage has had its steps, and another one follows."""
        most = self._plan.tasks[self.name].env_steps
        return self.next is not None and most is not None and env_steps - self.record.began >= most

    def end(self, env_steps: int, *, solved: bool, scores: dict[str, Evaluation]) -> None:
        """The stage has ended with these weights."""
        self.record.ended = env_steps
        if solved:
            self.record.reached = env_steps
        self.record.scores = {name: score_of(one) for name, one in scores.items()}

    def begin_next(self, env_steps: int) -> None:
        """The next stage begins."""
        assert self.next is not None
        self.records.append(self._begun(self.next, env_steps))

    def state(self) -> list[dict[str, Any]]:
        """For the checkpoint."""
        return as_json(self.records)

    def load_state(self, state: Any) -> None:
        """Continue from where a checkpoint stood."""
        records = restored(state)
        if [record.name for record in records] != self.names[: len(records)] or not records:
            raise CheckpointError(
                f"The checkpoint was saved in the stages {', '.join(one.name for one in records) or '(none)'}, this plan has "
                f"{', '.join(self.names)}: resume with the plan that was saved."
            )
        self.records = records
        for record in self.records:
            record.threshold = self._thresholds[record.name]


def score_of(evaluation: Evaluation) -> Score:
    """The score of an evaluation, and how far it may be off."""
    if evaluation.exact is not None:
        return Score(evaluation.exact)
    return Score(evaluation.mean, standard_error(evaluation.std, len(evaluation.returns)))
