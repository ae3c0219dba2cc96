"""Worker processes whose envs are stepped lane by lane, without waiting for each other.

Each worker has two lanes, both vector envs. While the trainer chooses actions for one, the worker steps the other, so it
never waits for the trainer nor for slower workers; a barrier at every step costs a third of the speed on 16 cores. Trainer and
workers talk by flags in shared memory: waking a process costs more than the trainer's whole work on a lane, so a worker is
only woken when it has gone to sleep.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gymnast.envs.core_turns import CoreTurns, Switch
from gymnast.envs.inprocess import IDLE
from gymnast.envs.spaces import copy_rows
from gymnast.envs.vector import NONE_ENDED, EndedEpisode, StepRow, some_rows
from gymnast.envs.worker_main import ASLEEP, COUNT, DONE, FREE, LANE_AT, PENDING, STATE, halves
from gymnast.envs.worker_process import ALIVE_CHECK_SECONDS, Worker, WorkerError, awake
from gymnast.envs.workers import MakeVector, WorkerPool
from gymnast.errors import EnvError

POLL_SECONDS = 0.0003
"""How often lanes are looked at while none is ready: short against a step of one, and seldom enough not to disturb them."""


class LanePool(WorkerPool):
    """N envs over several worker processes, two vector envs in each."""

    BY_LANES = True

    def __init__(
        self, make: MakeVector, n_envs: int, *, n_workers: int, core_turns: Switch = "auto", **options: Any
    ) -> None:
        self._under_way: dict[int, float] = {}  # lanes whose step has not ended, and until when it may take
        self._lost: set[int] = set()  # lanes of replaced workers, whose next step is reported as interrupted
        self._mail: dict[int, list[EndedEpisode]] = {}  # of lanes that ended after the one that is asked for
        self._next_look = 0.0
        n_workers = min(n_workers, n_envs // 2)
        self._turns = CoreTurns(n_workers, core_turns)
        super().__init__(make, n_envs, n_workers=n_workers, **options)
        shared = self._shared
        self.lanes = [half for worker in self._workers for half in halves(worker.envs)]
        shared.parts = [shared.part(slots) for slots in self.lanes]
        self._received = 0  # steps of lanes

    def send_lane(self, lane: int, actions: np.ndarray) -> None:
        """Begin a step of one lane."""
        shared, worker = self._shared, lane // 2
        shared.actions[self.lanes[lane]] = actions
        self._under_way[lane] = awake() + self.timeout
        if lane not in self._lost:
            shared.lanes[lane, STATE] = PENDING
            if shared.control[worker, ASLEEP]:
                self._workers[worker].go.release()

    def ready_lanes(self, *, patient: bool = True) -> list[int]:
        """Lanes whose step has ended or was lost; waits for one if `patient`."""
        states = self._shared.lanes[:, STATE]
        while True:
            ready = np.flatnonzero(states == DONE).tolist()
            if self._lost:
                ready += [lane for lane in self._under_way if lane in self._lost]
            if ready:
                for lane in ready:
                    states[lane] = FREE
                    del self._under_way[lane]
                return ready
            time.sleep(POLL_SECONDS)
            self._look_after_workers()
            if not patient:
                return []

    def even_out(self) -> None:
        """Let workers take turns on the cores where that helps; for those who need as many steps from each."""
        if self._turns.possible:
            pids = [worker.process.pid for worker in self._workers if worker.process.pid is not None]
            self._turns.even_out(pids, self._received)

    def rest(self, index: int) -> None:
        """Pause a slot until the next reset, so that the others of its lane are faster."""
        self._shared.rests[index] = True

    def _look_after_workers(self) -> None:
        """Now and then: replace those that died or hang."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + ALIVE_CHECK_SECONDS
        states = self._shared.lanes[:, STATE]
        for lane, deadline in list(self._under_way.items()):
            try:
                if lane not in self._lost:
                    self._workers[lane // 2].check(deadline)
            except WorkerError as failure:
                first = 2 * failure.worker.index
                if (
                    states[first : first + 2] != DONE
                ).all():  # else it left a result behind, or says itself why it ended
                    self._replace(failure)

    def _replace(self, failure: WorkerError) -> None:
        """Put a fresh worker in the place of a failed one; both its lanes have lost their episodes."""
        lanes = [2 * failure.worker.index, 2 * failure.worker.index + 1]
        failure.worker.kill()  # else it might yet end a step
        self._shared.lanes[lanes, STATE] = FREE
        super()._replace(failure)
        self._interrupted.clear()
        self._lost |= set(lanes)
        for lane in lanes:
            self._mail.pop(lane, None)

    def _at(self, worker: Worker) -> int:
        """The env of a worker that is being stepped, or IDLE."""
        for lane in (2 * worker.index, 2 * worker.index + 1):
            at = int(self._shared.lanes[lane, LANE_AT])
            if at != IDLE:
                return int(self.lanes[lane].start - worker.envs.start + at)
        return IDLE

    def recv_lane(self, lane: int, row: StepRow) -> Sequence[EndedEpisode]:
        """The outcome of a lane's step into its row."""
        ended: Sequence[EndedEpisode] = NONE_ENDED
        self._received += 1
        count = 0
        if lane not in self._lost:
            count = int(self._shared.lanes[lane, COUNT])
        if count:
            try:
                ended = self._ended_of(lane)
            except WorkerError as failure:
                self._replace(failure)
        part, slots = self._shared.parts[lane], self.lanes[lane]
        if lane in self._lost:
            self._lost.discard(lane)
            part.reward[:], part.terminated[:], part.truncated[:] = 0.0, False, True
            if part.own_reward is not None:
                part.own_reward[:] = 0.0
            lost = {"worker_restarted": True}
            ended = [
                EndedEpisode(i, None, float(self._returns[i]), int(self._lengths[i]), False, dict(lost))
                for i in range(slots.start, slots.stop)
            ]
        own = part.reward if part.own_reward is None else part.own_reward
        self._returns[slots] += own
        self._lengths[slots] += 1
        for episode in ended:
            self._returns[episode.index], self._lengths[episode.index] = 0.0, 0
        copy_rows(row.obs, part.obs)
        row.reward[...], row.terminated[...], row.truncated[...] = part.reward, part.terminated, part.truncated
        if row.own_reward is not None:
            row.own_reward[...] = own
        if row.mask is not None:
            row.mask[...] = part.mask
        return ended

    def _ended_of(self, lane: int) -> list[EndedEpisode]:
        """The episodes that a lane's step ended; the worker's messages come in the order in which its lanes were stepped."""
        worker = self._workers[lane // 2]
        while lane not in self._mail:
            other, ended = worker.message(awake() + self.timeout)
            self._mail[other] = ended
        return self._mail.pop(lane)

    def _command(self, command: str, arguments: dict[int, Any], patience: float = 1) -> list[Any]:
        """As for all workers, between steps."""
        self._refuse_half_a_step()
        return super()._command(command, arguments, patience)

    def _refuse_half_a_step(self) -> None:
        if self._under_way and not self._resources.closed:
            raise EnvError("The last step of the worker pool was interrupted half-way: make a new pool.")

    def reset(self, seeds: Sequence[int], row: StepRow) -> None:
        """Seed and reset every slot."""
        self._shared.rests[...] = False
        super().reset(seeds, row)
        self._lost.clear()

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore every slot by the way it was saved."""
        super().load_state(state)
        self._lost.clear()

    def send(self, actions: np.ndarray) -> None:
        """Begin a step of all lanes."""
        self._refuse_half_a_step()
        for lane, slots in enumerate(self.lanes):
            self.send_lane(lane, actions[slots])

    def recv(self, row: StepRow) -> Sequence[EndedEpisode]:
        """End a step that was begun for all lanes."""
        ended: list[EndedEpisode] = []
        while self._under_way:
            for lane in self.ready_lanes():
                ended += self.recv_lane(lane, some_rows(row, self.lanes[lane]))
        return sorted(ended, key=lambda episode: episode.index) or NONE_ENDED

    def close(self) -> None:
        """End all workers, free the shared memory, and let others move theirs."""
        super().close()
        self._turns.close()

    def describe(self) -> str:
        """How the envs are stepped, in words for the log."""
        return f"{super().describe()}, two lanes each"
