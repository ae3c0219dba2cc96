"""The evaluations of a run: in this process while they are short, next to training when they would hold it up.

An evaluation next to training takes a snapshot. Its job keeps the whole checkpoint of the boundary it evaluates until the
result is there: if that is the best so far, exactly that checkpoint is written. A checkpoint made meanwhile carries the
open jobs, and a resumed run does them again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnast.config.plan import FULL_EPISODES
from gymnast.config.schema import RunConfig
from gymnast.envs.choose import under_debugger
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.verdict import Verdict
from gymnast.policies.base import Policy
from gymnast.runs import checkpoint
from gymnast.timing import StageTimer
from gymnast.training.evaluating.cadence import Extent
from gymnast.training.evaluating.evaluator import Evaluator, EvalWorkerError
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.signals import StopRequest

if TYPE_CHECKING:
    from gymnast.training.evaluating.worker import EvalWorker

LONG_SECONDS = 2.0
"""Shorter evaluations are not worth a process next to training."""
MAX_FAILURES = 3
"""After so many failures of the worker evaluations stay in this process."""
WAIT_SECONDS = 0.1


@dataclass
class Job:
    """An evaluation that is under way or waits for its turn."""

    turn: int
    env_steps: int
    """The boundary whose weights it evaluates."""
    extent: Extent
    packed: checkpoint.Packed | None = None
    """That boundary's checkpoint."""

    @property
    def weights(self) -> bytes:
        """The policy's weights as they were at its step."""
        assert self.packed is not None
        return self.packed.blobs[checkpoint.POLICY]

    def state(self, boundary: int) -> dict[str, Any]:
        """For the checkpoint of `boundary`, which does not hold itself."""
        if self.packed is None or self.env_steps == boundary:
            blobs = None
        else:
            blobs = dict(self.packed.blobs)
        return {"turn": self.turn, "env_steps": self.env_steps, "extent": asdict(self.extent), "blobs": blobs}


class Evaluations:
    """Who evaluates, and what is still open. Results come in the order of their turns."""

    def __init__(
        self, config: RunConfig, reporter: Reporter, timer: StageTimer, stop: StopRequest, *, on_gpu: bool = False
    ) -> None:
        """A process next to training has no GPU: where training has one, evaluations are faster here."""
        self.seconds: float | None = None
        """How long the last evaluation in this process took; None before the first."""
        self.jobs: list[Job] = []
        self._config, self._reporter, self._on_gpu = config, reporter, on_gpu
        self._timer, self._stop = timer, stop
        self._here = Evaluator(config)
        self._worker: EvalWorker | None = None
        self._evaluating: Job | None = None
        self._failures = 0
        self._beside = config.eval.mode == "worker"

    def enter_stage(self, config: RunConfig) -> None:
        """Evaluate another env from now on."""
        self._here.close()
        self._here, self._config, self.seconds = Evaluator(config), config, None

    @property
    def next_to_training(self) -> bool:
        """Whether the next evaluation is done next to training."""
        return self._beside and self._failures < MAX_FAILURES

    def here(self, policy: Policy, turn: int, extent: Extent, *, what: str = "evaluating") -> Evaluation:
        """Evaluate a policy in this process, now."""
        with self._timer.stage("eval"), self._reporter.activity(what, extent.amount) as tick:
            self._here.prepare()  # made once: no part of how long an evaluation takes
            began = time.perf_counter()
            evaluation = self._here(policy, turn, extent, tick)
            self.seconds = time.perf_counter() - began
        moves = self._config.eval.mode == "auto" and not self._beside and not self._on_gpu
        if moves and self.seconds >= LONG_SECONDS and _second_core():
            self._beside = True
            self._reporter.say(
                f"An evaluation takes {self.seconds:.1f} s: from now on a separate process runs them "
                "(eval.mode=inprocess keeps them here)."
            )
        return evaluation

    def expected_seconds(self, worst: float) -> float:
        """What the next evaluation in this process takes: as long as the last one; before the first the worst case."""
        if self.seconds is not None:
            return self.seconds
        return worst

    def submit(self, job: Job, pack: Callable[[], checkpoint.Packed]) -> None:
        """Have the weights of this boundary evaluated next to training; `pack` makes its checkpoint, open jobs included."""
        with self._timer.stage("eval"):
            self.jobs.append(job)
            job.packed = pack()
            self._begin()

    def take(self, *, wait: bool) -> tuple[Job, Evaluation] | None:
        """The result of the oldest job; None when it is not there. `wait` waits for it, unless a signal asks to stop."""
        if not self.jobs:
            return None
        with self._timer.stage("eval"):
            if not wait:
                return self._taken(lambda: False, None)
            job = self.jobs[0]
            with self._reporter.activity(f"evaluating step {job.env_steps:,}", job.extent.amount) as tick:
                return self._taken(lambda: not self._stop.pending, tick)

    def _taken(
        self, patient: Callable[[], bool], on_episode: Callable[[int], None] | None
    ) -> tuple[Job, Evaluation] | None:
        self._begin()
        job = self.jobs[0]
        evaluation = self._poll(job, patient, on_episode)
        if evaluation is None:
            return None
        self.jobs.pop(0)
        self._evaluating = None
        self._begin()
        return job, evaluation

    def report(self, env_steps: int, evaluation: Evaluation, verdict: Verdict | None) -> None:
        """Show an evaluation to whoever watches the run."""
        self._reporter.evaluated(env_steps, evaluation, verdict)

    def _begin(self) -> None:
        """Give the oldest job to the worker, which is started for the first one."""
        if not self.jobs or self._evaluating is not None or not self.next_to_training:
            return
        from gymnast.training.evaluating.worker import EvalWorker

        self._evaluating = job = self.jobs[0]
        if self._worker is None:
            self._worker = EvalWorker(self._config)
        self._worker.submit(job.weights, job.turn, job.extent)

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
            rest = (
                "A new worker runs the next one"
                if self.next_to_training
                else "It failed too often: all further ones run here"
            )
            self._reporter.warn(
                f"The evaluation worker {error}\nThe evaluation of step {job.env_steps:,} runs in this process. {rest}."
            )
            self._stop_worker()
            evaluation = self._from_snapshot(job, on_episode)
        return evaluation

    def _from_snapshot(self, job: Job, on_episode: Callable[[int], None] | None) -> Evaluation:
        """Evaluate a snapshot here. What the env does here ends the run, as ever."""
        return self._here(self._here.policy_of(job.weights), job.turn, job.extent, on_episode)

    def cancel(self) -> None:
        """Forget the open jobs: the run has ended."""
        self.jobs.clear()
        self._stop_worker()

    def note(self) -> str:
        """What goes on next to training, for the progress line."""
        if self.jobs:
            return f" (evaluating step {self.jobs[0].env_steps:,})"
        return ""

    def _stop_worker(self) -> None:
        worker, self._worker, self._evaluating = self._worker, None, None
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
            if blobs is None:
                packed = checkpoint.packed_from(folder)
            else:
                packed = checkpoint.repacked(job["env_steps"], blobs)
            self.jobs.append(Job(job["turn"], job["env_steps"], self._extent(job.get("extent")), packed))

    def _extent(self, saved: dict[str, Any] | None) -> Extent:
        """How much an open job plays; checkpoints of earlier versions do not say."""
        if saved is None:
            return Extent(self._config.eval.episodes or FULL_EPISODES)
        confirm_at, steps = saved["confirm_at"], saved.get("steps")
        return Extent(
            int(saved["episodes"]),
            confirm_at=None if confirm_at is None else float(confirm_at),
            steps=None if steps is None else int(steps),
        )

    def close(self) -> None:
        """Cancel what is under way, leave no process behind."""
        self._stop_worker()
        self._here.close()


def _second_core() -> bool:
    """Whether a process next to training has a core to run on; a debugger sees only its own process."""
    allowed = getattr(os, "sched_getaffinity", None)
    if allowed is None:
        cores = os.cpu_count() or 1
    else:
        cores = len(allowed(0))
    return cores > 1 and not under_debugger()
