"""How an update runs: captured if possible, otherwise operation by operation."""

from __future__ import annotations

import torch

from gymnast.algorithms.base import Coefficients
from gymnast.rollout.batch import Batch
from gymnast.training.captured import Captured, Launched, can_capture
from gymnast.training.update import Eager, Learner, Observer, Running


class Updater:
    """Begins updates of one learner, and keeps what was captured for them."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self._eager = Eager(learner)
        self._captured: dict[int, Captured] = {}
        self._stream: torch.cuda.Stream | None = None

    def launch(self, batch: Batch, c: Coefficients, observer: Observer | None = None) -> Running:
        """Begin all epochs over one batch; what comes back may still be at work on a GPU."""
        if observer is not None or not can_capture(self.learner, batch):
            return Running(self.learner, self._eager.watched_by(observer), batch, c)
        if self._stream is None:
            self._stream = torch.cuda.Stream()
        where = batch["action"].data_ptr()  # a rollout has two halves, and a graph reads from one of them
        if where not in self._captured:
            self._captured[where] = Captured(self.learner)
        return Launched(self.learner, self._captured[where], batch, c, self._stream)
