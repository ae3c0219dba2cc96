"""What the training loop itself remembers between iterations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.history import History
from gymnast.training.rows import Row
from gymnast.training.stopping import EvalCadence

SAVED = ("best", "best_step", "best_is_evaluated", "solved", "next_save", "evaluated_at")


@dataclass
class Progress:
    """Evaluation cadence, the best so far, the last result and what was saved."""

    cadence: EvalCadence
    best: float | None = None
    best_is_evaluated: bool = False
    best_step: int | None = None
    """Env steps of the best weights."""
    solved: bool = False
    evaluation: Evaluation | None = None
    evaluated_at: int = -1
    saved_at: int = -1
    next_save: int = 0
    history: History = field(default_factory=History)

    def improved_by(self, score: float | None, *, evaluated: bool) -> bool:
        """Whether `score` beats the best so far; an evaluation beats any training return, and never the other way."""
        if score is None or (self.best_is_evaluated and not evaluated):
            return False
        return self.best is None or score > self.best or (evaluated and not self.best_is_evaluated)

    def note_best(self, score: float | None, env_steps: int, *, evaluated: bool) -> None:
        """These weights are the best so far."""
        self.best, self.best_step, self.best_is_evaluated = score, env_steps, evaluated

    def state(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"cadence": self.cadence.state(), **{key: getattr(self, key) for key in SAVED}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue."""
        self.cadence.load_state(state["cadence"])
        for key in SAVED:
            setattr(self, key, state.get(key))


def score_of(row: Row) -> float | None:
    """What an evaluation counts: the exact expectation where there is one."""
    exact = row.get("eval/exact_return")
    return row.get("eval/return_mean") if exact is None else exact
