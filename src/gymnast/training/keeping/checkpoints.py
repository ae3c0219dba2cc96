"""What is kept of a run: the boundary it can go on from, and its best weights.

A checkpoint always describes an iteration boundary. Most boundaries are not written; one that may have to be, because the
coming iteration is too long to wait for on a signal, is held in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnast.errors import CheckpointError
from gymnast.runs import checkpoint
from gymnast.runs.bulk import BulkStore
from gymnast.runs.rescue import Rescue
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.keeping.saver import CheckpointSaver
from gymnast.training.trainer import Row, Trainer, policy_tensors


@dataclass
class Best:
    """The best weights so far."""

    score: float | None = None
    step: int | None = None
    """Env steps of these weights."""
    evaluated: bool = False
    """Whether an evaluation gave the score; otherwise it is a training return."""

    def beaten_by(self, score: float | None, *, evaluated: bool) -> bool:
        """Whether `score` is better. An evaluation beats any training return, and never the other way round."""
        if score is None or (self.evaluated and not evaluated):
            return False
        if self.score is None:
            return True
        return score > self.score or (evaluated and not self.evaluated)

    @property
    def evaluation(self) -> tuple[float | None, int | None]:
        """The best score of an evaluation and its step; None if there was none yet."""
        if self.evaluated:
            return (self.score, self.step)
        return (None, None)


@dataclass
class Kept:
    """What a run has kept so far."""

    next_save: int
    """Env steps at which the next checkpoint is due."""
    best: Best = field(default_factory=Best)
    saved_at: int = -1
    """Env steps of the newest boundary on disk that the run can go on from."""

    def state(self) -> dict[str, Any]:
        """Best score and next save, for the checkpoint."""
        best = self.best
        return {
            "best": best.score,
            "best_step": best.step,
            "best_is_evaluated": best.evaluated,
            "next_save": self.next_save,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from where a checkpoint stood."""
        score, step = state.get("best"), state.get("best_step")
        self.best = Best(
            None if score is None else float(score),
            None if step is None else int(step),
            bool(state.get("best_is_evaluated", False)),
        )
        self.next_save = int(state.get("next_save", self.next_save))


class Checkpoints:
    """Packs boundaries, and writes those that are due, the best, and the last."""

    def __init__(
        self,
        run: Run,
        trainer: Trainer,
        kept: Kept,
        timer: StageTimer,
        rescue: Rescue,
        warn: Callable[[str], None],
        bulk: BulkStore,
    ) -> None:
        """`bulk` knows what of the trainer's bulk data is on disk already."""
        self.run, self.kept = run, kept
        self.weights_at = -1
        """Env steps of the newest weights that this attempt has saved; the run may not be able to go on exactly from them."""
        self.held: checkpoint.Packed | None = None
        """The boundary in memory."""
        self.boundary_steps = 0, 0
        """Env steps and vector steps of the last boundary that the run can go on from."""
        self.further: Callable[[], Mapping[str, Any]] = dict
        """What else is saved with a boundary: what evaluations remember, which are made after this."""
        self.open: Callable[[], Sequence[checkpoint.Packed]] = tuple
        """Boundaries that may still be written, because their evaluation is under way."""
        self._trainer, self._timer, self._rescue, self._warn = trainer, timer, rescue, warn
        self._bulk = bulk
        self._saver = CheckpointSaver(run.folder, trainer.config.train.keep_checkpoints, warn, self._bulk)

    # ---- one boundary ----------------------------------------------------------------------------------------------

    @property
    def is_saved(self) -> bool:
        """Whether the boundary the run is at is on disk."""
        return self.kept.saved_at == self._trainer.counters.env_steps

    def pack(self, row: Row) -> checkpoint.Packed:
        """The boundary the run is at."""
        trainer = self._trainer
        counters = trainer.counters
        state = {"session": trainer.state(), "loop": {**self.kept.state(), **self.further()}}
        weights = policy_tensors(trainer.policy)
        series = self._bulk.take(trainer.bulk())
        return checkpoint.pack(counters.env_steps, weights, state, row, counters.at(self._timer.wall()), series)

    def hold(self, row: Row, *, in_memory: bool) -> None:
        """The run leaves this boundary; keep it in memory if it may have to come back."""
        counters = self._trainer.counters
        self.held = None
        if in_memory and not self.is_saved:
            self.held = self.pack(row)
        self.boundary_steps = counters.env_steps, counters.vec_steps

    def write_held(self) -> None:
        """Write the boundary that is held in memory, unless a newer one is on disk."""
        steps, _ = self.boundary_steps
        if self.held is not None and self.kept.saved_at < steps:
            self._saver.save(self.held, best=False, metrics_file=self.run.metrics_path)
            self.kept.saved_at = steps
        self.held = None

    def keep(self, row: Row, *, asked: bool, stopping: bool) -> bool:
        """Write this boundary when it is due, the best so far, or `asked` for; returns whether it was.

        With `stopping`, it is written if the run can go on from it.
        """
        trainer = self._trainer
        steps, resumable = trainer.counters.env_steps, trainer.resumable
        due = steps >= self.kept.next_save and resumable
        if due:
            self.kept.next_save = steps + trainer.plan.checkpoint_every
        score, evaluated = score_of(row)
        # A return in training is noisy: it makes a best checkpoint only where one is written anyway.
        best = self.kept.best.beaten_by(score, evaluated=evaluated) and (evaluated or due or asked)
        if not (due or best or asked or (stopping and resumable)):
            return False
        if best:
            self.kept.best = Best(score, steps, evaluated)
        self.save(row, best=best, latest=resumable or asked)
        return True

    def save(
        self, row: Row, *, best: bool = False, latest: bool = True, newest: bool = False, master: str | None = None
    ) -> None:
        """Write this boundary. It is not the `latest` one where the run could not go on from it.

        `newest` keeps it nevertheless, for whoever goes on without its envs or plays its policy. `master` names the stage of a
        plan that has ended with these weights: they stay.
        """
        self.rescue()
        if not latest and self.held is not None:
            # Weights between two resets of the envs: where the run can go on from must be on disk before them.
            self.write_held()
        packed = self.pack(row)
        metrics_file = self.run.metrics_path
        self._saver.save(packed, best=best, metrics_file=metrics_file, latest=latest, newest=newest, master=master)
        self._prune_bulk(packed)
        self.weights_at = self._trainer.counters.env_steps
        if latest:
            self.kept.saved_at = self.weights_at

    def keep_earlier(self, packed: checkpoint.Packed | None, metrics: Row) -> None:
        """An evaluation of earlier weights has ended: write exactly their checkpoint if they are the best so far."""
        score, evaluated = score_of(metrics)
        if packed is None or not self.kept.best.beaten_by(score, evaluated=evaluated):
            return
        self.kept.best = Best(score, packed.step, evaluated)
        with self._timer.stage("checkpoint"):
            completed = checkpoint.with_metrics(packed, metrics)
            self._saver.save(completed, best=True, latest=False, metrics_file=self.run.metrics_path)

    def landed(self) -> list[Path]:
        """The checkpoints that have reached the disk since the last call."""
        found = self._saver.landed
        steps = dict.fromkeys(found.pop(0) for _ in range(len(found)))
        return [self.run.checkpoints / f"step={step}" for step in steps]

    def _prune_bulk(self, *packed: checkpoint.Packed) -> None:
        """Remove bulk data that nothing on disk or in memory refers to; here, where no boundary comes in between."""
        if self._trainer.bulk():
            known = (*packed, self.held, self._saver.best, *self.open())
            checkpoint.prune_bulk(self.run.folder, [one for one in known if one is not None])

    # ---- the folder ------------------------------------------------------------------------------------------------

    def rescue(self) -> None:
        """Make a run folder that has vanished again, with all that is known; where that cannot be, the training ends."""
        if self._rescue.is_whole() and self._bulk.is_whole():
            return
        with contextlib.suppress(OSError):
            self._saver.wait()
        self._rescue.rebuild()
        self._bulk.forget()
        if self._saver.best is not None:
            self._saver.save(self._saver.best, best=True, latest=False, metrics_file=self.run.metrics_path)
        # What was saved is gone: save the next boundary, and this one if a run can resume from it.
        self.kept.saved_at, self.kept.next_save = -1, self._trainer.counters.env_steps
        if self.held is not None and self.held.bulk:
            self.held = None  # what it refers to is gone, and the coming one is saved whole
        if self.held is not None:
            self.write_held()
        self._warn(
            f"The folder of run {self.run.id}, or a part of it, had vanished ('{self.run.folder}'). It was made again: config, "
            "metrics, log and the best weights are back, and a checkpoint follows. What else was deleted is lost: earlier "
            "checkpoints, videos and other files."
        )

    def finish(self, reason: str) -> None:
        """Wait until everything is on disk; a CheckpointError if the end of the run is not."""
        self._saver.close()
        self._prune_bulk()
        if self._saver.failure is not None:
            raise CheckpointError(f"The run ended ({reason}), but its end could not be saved. {self._saver.failure}")

    def close(self) -> None:
        """Wait for what is being written, whatever comes of it."""
        self._saver.close()

    def release(self) -> None:
        """Give the folder free."""
        self._bulk.close()
        self._rescue.close()


def score_of(row: Row) -> tuple[float | None, bool]:
    """What counts in a comparison of weights, and whether an evaluation gave it: its exact expectation if there is one."""
    if row.get("eval/return_mean") is None:
        return row.get("rollout/return_mean"), False
    exact = row.get("eval/exact_return")
    return (row["eval/return_mean"] if exact is None else exact), True
