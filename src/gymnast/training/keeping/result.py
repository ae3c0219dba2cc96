"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.verdict import Verdict, shown
from gymnast.runs.store import Run

if TYPE_CHECKING:
    from gymnast.training.showing.behind import Unshown


@dataclass(repr=False)
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
    """Env steps of the weights that `evaluation` evaluated; earlier than the end where a snapshot ended the run."""
    verdict: Verdict | None = None
    """On the evaluation that solved the env, or on the best one where none did."""
    best: float | None = None
    """The best score of an evaluation: what `eval`, `video` and `export` take."""
    best_at: int | None = None
    alerts: int = 0
    """How many kinds of alerts there were, not counting mere information."""
    weights_at: int | None = None
    """Env steps of weights that were saved where the run cannot resume exactly; `env_steps` is where it can."""

    unshown: Unshown | None = None
    """What is left to be filmed once the process has ended; None if nothing is, or films are made already."""

    def __repr__(self) -> str:
        """Short enough for the last line of a notebook's cell."""
        said = [*self.scores(), f"{self.stop_reason} after {self.env_steps:,} env steps"]
        return f"TrainResult(run {self.run.id}: {'; '.join(said)})"

    def scores(self) -> list[str]:
        """The last evaluation, the best one where that is another, and whether the env is solved."""
        threshold = None if self.verdict is None else self.verdict.threshold
        lines = []
        if self.evaluation is not None:
            last = self.evaluation.sentence(threshold)
            two = self.best is not None and self.best_at != self.evaluated_at
            lines.append(f"last: {last}, at {self.evaluated_at:,} env steps" if two else last)
            if self.best is not None and two:
                lines.append(f"best: {shown(self.best, threshold)}, at {self.best_at:,} env steps")
        if self.verdict is not None:
            lines.append(self.verdict.sentence())
        return lines
