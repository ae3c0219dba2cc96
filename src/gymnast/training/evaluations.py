"""The evaluations of a run: in this process while they are short, beside training when they would hold it up.

An evaluation beside training judges a snapshot. Its job keeps the whole checkpoint of the boundary it judges until the
result is there: if that is the best so far, exactly that checkpoint is written. A checkpoint made meanwhile carries the
open jobs, and a resumed run does them again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.config.schema import RunConfig
from gymnast.envs.choose import under_debugger
from gymnast.evaluation.evaluate import Evaluation
from gymnast.policies.actor_critic import ActorCritic
from gymnast.runs import checkpoint
from gymnast.training.evaluator import Evaluator, EvalWorkerError
from gymnast.training.report import Reporter

if TYPE_CHECKING:
    from gymnast.training.eval_worker import EvalWorker

LONG_SECONDS = 2.0
"""Shorter evaluations are not worth a process beside training."""
MAX_FAILURES = 3
"""After so many failures of the worker evaluations stay in this process."""
WAIT_SECONDS = 0.1
UNKNOWN_HORIZON = 1000


@dataclass
class Job:
    """An evaluation that is under way or waits for its turn."""

    turn: int
    env_steps: int
    """The boundary whose weights it judges."""
    packed: checkpoint.Packed | None = None
    """That boundary's checkpoint."""

    @property
    def weights(self) -> bytes:
        """The snapshot."""
        assert self.packed is not None
        return self.packed.blobs[checkpoint.POLICY]

    def state(self, boundary: int) -> dict[str, Any]:
        """For the checkpoint of `boundary`, which does not hold itself."""
        blobs = None if self.packed is None or self.env_steps == boundary else dict(self.packed.blobs)
        return {"turn": self.turn, "env_steps": self.env_steps, "blobs": blobs}


class Evaluations:
    """Who judges, and what is still open. Results come in the order of their turns."""

    def __init__(self, config: RunConfig, reporter: Reporter, *, on_gpu: bool = False) -> None:
        """A process beside training has no GPU: where training has one, evaluations are faster here."""
        self.seconds: float | None = None
        """How long the last evaluation in this process took; None before the first."""
        self.jobs: list[Job] = []
        self._config, self._reporter, self._on_gpu = config, reporter, on_gpu
        self._here = Evaluator(config)
        self._worker: EvalWorker | None = None
        self._judging: Job | None = None
        self._failures = 0
        self._beside = config.eval.mode == "worker"

    @property
    def beside(self) -> bool:
        """Whether the next evaluation is done beside training."""
        return self._beside and self._failures < MAX_FAILURES

    def here(self, policy: ActorCritic, turn: int, on_episode: Callable[[int], None] | None = None) -> Evaluation:
        """Judge a policy in this process, now."""
        envs = self._here.envs  # made once: no part of how long an evaluation takes
        began = time.perf_counter()
        evaluation = self._here(policy, turn, on_episode, envs=envs)
        self.seconds = time.perf_counter() - began
        moves = self._config.eval.mode == "auto" and not self._beside and not self._on_gpu
        if moves and self.seconds >= LONG_SECONDS and _second_core():
            self._beside = True
            self._reporter.say(
                f"An evaluation takes {self.seconds:.1f} s: from now on a process beside training does them "
                "(eval.mode=inprocess keeps them here)."
            )
        return evaluation

    def expected_seconds(self, per_step: float) -> float:
        """What the next evaluation in this process takes: as long as the last one; before the first the worst case."""
        if self.seconds is not None:
            return self.seconds
        return per_step * self._config.eval.episodes * (self._config.spec.horizon or UNKNOWN_HORIZON)

    def submit(self, turn: int, env_steps: int, pack: Callable[[], checkpoint.Packed]) -> None:
        """Have the weights of this boundary judged beside training; `pack` makes its checkpoint, open jobs included."""
        job = Job(turn, env_steps)
        self.jobs.append(job)
        job.packed = pack()
        self._begin()

    def take(
        self, *, patient: Callable[[], bool] = lambda: False, on_episode: Callable[[int], None] | None = None
    ) -> tuple[Job, Evaluation] | None:
        """The result of the oldest job, waited for while `patient` says so; None when it is not there."""
        if not self.jobs:
            return None
        self._begin()
        job = self.jobs[0]
        evaluation = self._poll(job, patient, on_episode)
        if evaluation is None:
            return None
        self.jobs.pop(0)
        self._judging = None
        self._begin()
        return job, evaluation

    def _begin(self) -> None:
        """Give the oldest job to the worker, which is started for the first one."""
        if not self.jobs or self._judging is not None or not self.beside:
            return
        from gymnast.training.eval_worker import EvalWorker

        self._judging = job = self.jobs[0]
        if self._worker is None:
            self._worker = EvalWorker(self._config)
        self._worker.submit(job.weights, job.turn)

    def _poll(
        self, job: Job, patient: Callable[[], bool], on_episode: Callable[[int], None] | None
    ) -> Evaluation | None:
        if self._worker is None:
            return self._from_snapshot(job, on_episode)
        try:
            evaluation = self._worker.poll()
            while evaluation is None and patient():
                evaluation = self._worker.poll(WAIT_SECONDS)
                if on_episode is not None:
                    on_episode(self._worker.episodes)
        except EvalWorkerError as error:
            self._failures += 1
            rest = "A new worker does the next one" if self.beside else "It failed too often: all others are too"
            self._reporter.warn(
                f"The evaluation worker {error}\nThe evaluation of step {job.env_steps:,} is done in this process. {rest}."
            )
            self._stop_worker()
            evaluation = self._from_snapshot(job, on_episode)
        return evaluation

    def _from_snapshot(self, job: Job, on_episode: Callable[[int], None] | None) -> Evaluation:
        """Judge a snapshot here. What the env does here ends the run, as ever."""
        return self._here(self._here.policy_of(job.weights), job.turn, on_episode)

    def cancel(self) -> None:
        """Forget the open jobs: the run has ended."""
        self.jobs.clear()
        self._stop_worker()

    def note(self) -> str:
        """What goes on beside training, for the progress line."""
        return f" (evaluating step {self.jobs[0].env_steps:,})" if self.jobs else ""

    def _stop_worker(self) -> None:
        worker, self._worker, self._judging = self._worker, None, None
        if worker is not None:
            worker.close()

    def state(self, boundary: int) -> list[dict[str, Any]]:
        """The open jobs, for the checkpoint of `boundary`."""
        return [job.state(boundary) for job in self.jobs]

    def load_state(self, state: list[dict[str, Any]], folder: Path) -> None:
        """Take the open jobs of the checkpoint in `folder` up again."""
        self._beside = self._beside or (bool(state) and self._config.eval.mode == "auto")
        for job in state:
            blobs = job["blobs"]
            packed = checkpoint.packed_from(folder) if blobs is None else checkpoint.Packed(job["env_steps"], blobs)
            self.jobs.append(Job(job["turn"], job["env_steps"], packed))

    def close(self) -> None:
        """Cancel what is under way, leave no process behind."""
        self._stop_worker()
        self._here.close()


def _second_core() -> bool:
    """Whether a process beside training has a core to run on; a debugger sees only its own process."""
    allowed = getattr(os, "sched_getaffinity", None)
    cores = os.cpu_count() or 1 if allowed is None else len(allowed(0))
    return cores > 1 and not under_debugger()
