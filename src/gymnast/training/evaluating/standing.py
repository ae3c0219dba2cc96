"""What evaluations have shown of a run so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.quality import Judged, efficiency, first_solved, restored
from gymnast.metrics.verdict import Verdict


@dataclass(frozen=True)
class Scale:
    """What evaluations of a run are held against."""

    budget: int = 0
    """In vec steps."""
    random: float | None = None
    threshold: float | None = None


@dataclass
class Standing:
    """The last result, and whether the env is solved."""

    solved: bool = False
    verdict: Verdict | None = None
    """On the evaluation that solved the env, or on the best one as long as none did."""
    evaluation: Evaluation | None = None
    """The last one of this attempt."""
    evaluated_at: int = -1
    """Env steps of the weights of the last one, also of an earlier attempt."""
    scale: Scale = field(default_factory=Scale)
    judged: list[Judged] = field(default_factory=list)
    """All evaluations of the run."""
    solved_seconds: float | None = None
    """When the env was solved, if that was in this attempt. A checkpoint, the same however fast a run is, does not hold it."""

    def note(
        self, evaluation: Evaluation, env_steps: int, verdict: Verdict | None, *, vec_steps: int, seconds: float
    ) -> None:
        """Take a result in; `seconds` of the run have passed."""
        self.evaluation, self.evaluated_at = evaluation, env_steps
        if verdict is not None:
            self._note_verdict(verdict)
        solved = verdict is not None and verdict.solved
        if solved and first_solved(self.judged) is None:
            self.solved_seconds = seconds
        self.judged.append(Judged(vec_steps, evaluation.score, solved))

    def _note_verdict(self, verdict: Verdict) -> None:
        """Keep it if nothing before it solved the env or came closer."""
        if self.solved:
            return
        self.solved = verdict.solved
        if self.solved or self.verdict is None or verdict.score > self.verdict.score:
            self.verdict = verdict

    def forget(self) -> None:
        """The next stage of a plan begins: what was solved so far is not it."""
        self.solved, self.verdict, self.evaluation, self.evaluated_at = False, None, None, -1
        self.judged, self.solved_seconds = [], None

    def status(self) -> dict[str, Any]:
        """For the run's status."""
        status: dict[str, Any] = {
            "solved": self.solved,
            "verdict": None if self.verdict is None else self.verdict.sentence(),
        }
        if self.evaluation is not None:  # until a resumed run is evaluated again, what was known of it holds
            status["last_return"] = self.evaluation.score
            status["last_at"] = self.evaluated_at
            status["eval_engine"] = self.evaluation.engine
        if self.judged:
            scale, solved = self.scale, first_solved(self.judged)
            status["efficiency"] = efficiency(self.judged, scale.budget, scale.random, scale.threshold)
            status["vec_steps_to_solved"] = None if solved is None else solved.vec_steps
            if solved is None or self.solved_seconds is not None:  # else an earlier attempt has written it
                status["seconds_to_solved"] = self.solved_seconds
        return status

    def state(self) -> dict[str, Any]:
        """Score and verdict so far, for the checkpoint."""
        verdict = None if self.verdict is None else asdict(self.verdict)
        judged = [list(one) for one in self.judged]
        return {"solved": self.solved, "verdict": verdict, "evaluated_at": self.evaluated_at, "judged": judged}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from where a checkpoint stood."""
        self.solved = bool(state.get("solved", False))
        self.evaluated_at = int(state.get("evaluated_at", -1))
        verdict = state.get("verdict")
        self.verdict = None if verdict is None else Verdict.restored(verdict)
        self.judged = restored(state.get("judged"))
