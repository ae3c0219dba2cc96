"""Filling rollouts on a GPU, lane by lane.

Envs in worker processes are stepped lane by lane: whoever is ready is acted for while the others step, so no core waits for
the slowest one and none for the GPU. A slot's next state depends on nothing but its own actions, and its noise is drawn before;
so the order in which lanes arrive changes no sample.

With `ahead`, lanes that have played their part of a rollout go on into the next one while slower lanes finish and while the
policy learns. What they play until then is played by the policy of the iteration before: the lag is at most one iteration, and
each sample keeps the probability it was played with, which is what the ratio of PPO is taken against.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv, some_rows
from gymnast.policies.base import Policy
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.acting import RecordingActor
from gymnast.rollout.collect import Ended, OnStep, bootstrap_cut, check
from gymnast.rollout.device import DeviceRollout
from gymnast.timing import StageTimer


class DeviceCollector:
    """Fills `DeviceRollout`s. With `ahead`, a copy of the policy acts while the policy itself learns."""

    def __init__(
        self,
        policy: Policy,
        weights: FlatParameters,
        envs: VectorEnv,
        rollout: DeviceRollout,
        generator: torch.Generator,
        *,
        by_lanes: bool,
        ahead: bool = False,
    ) -> None:
        self.rollout = rollout
        self._learning, self._weights, self._envs, self._generator = policy, weights, envs, generator
        self.policy, self._acting = policy, weights
        self._lanes: Lanes
        if by_lanes and isinstance(envs, LanePool):
            self._lanes = envs
        else:
            self._lanes = OneLane(envs)
        self._may_run_on = ahead and not isinstance(self._lanes, OneLane)
        halves = [rollout]
        if self._may_run_on:
            self.policy = copy.deepcopy(policy)
            self._acting = FlatParameters(self.policy)
            own = {field.name for field in policy.fields()}
            further = [field for name, field in rollout.fields.items() if name not in own]
            halves.append(DeviceRollout(rollout.n_steps, envs, policy, rollout.device, further, first=rollout))
        self._n_steps, self._slots = rollout.n_steps, self._lanes.lanes
        self._now, self._next = halves[0], halves[-1]
        self._rows = {
            half.half: [[some_rows(row, slots) for row in half.rows] for slots in self._slots] for half in halves
        }
        self._ended: dict[int, Ended] = {half.half: [] for half in halves}
        self._actor = RecordingActor(self.policy, rollout, self._slots)
        self._at: list[int | None] = [None] * len(self._slots)
        """Steps that each lane has played since the beginning of this rollout, beyond its end those of the next one; None for
        a lane that has not begun."""
        self._drawn = False  # whether the noise of this rollout was drawn while the last one was filled
        self._playing = 0
        self._runs_on = False
        self._waited = 0.0

    def collect(self, timer: StageTimer, on_step: OnStep | None = None, *, run_on: bool = False) -> Ended:
        """Fill the next rollout, from `first_row` or from where its lanes are already; return the episodes that ended."""
        self._publish()
        rollout, self._runs_on = self._now, run_on and self._may_run_on
        begin, self._waited = time.perf_counter(), 0.0
        rollout.length = rollout.n_steps
        with torch.inference_mode():
            if not self._drawn:
                self._draw(rollout)
            if self._runs_on:
                self._draw(self._next)
            self._begin_lanes()
            told = 0
            while any(at is None or at < self._n_steps for at in self._at):
                self._serve()
                if on_step is not None and (self._at[0] or 0) >= told + 64:
                    told = min(self._at[0] or 0, self._n_steps)
                    on_step(told)
            ended = self._ended[rollout.half]
            ended.sort(key=lambda found: (found[0], found[1].index))  # as if all slots had been stepped together
            self._finish(rollout, ended)
        timer.add("env", self._waited)
        timer.add("policy", time.perf_counter() - begin - self._waited)
        check(rollout, self._envs)
        self._turn_over()
        self.rollout = rollout
        return ended

    @property
    def ahead(self) -> bool:
        """Whether some lanes are in the next rollout, so that envs and `first_row` are not all there is to go on from."""
        return any(at is not None for at in self._at)

    def start_episodes(self, seeds: list[int]) -> None:
        """Begin fresh episodes in every slot."""
        self._envs.reset(seeds, self.rollout.first_row)

    def _publish(self) -> None:
        """Give the weights to the copy that acts, if there is one."""
        if self.policy is self._learning:
            return
        self._acting.values.copy_(self._weights.values)
        for theirs, ours in zip(self.policy.buffers(), self._learning.buffers(), strict=True):
            theirs.copy_(ours)

    def serve_while(self, busy: Callable[[], bool]) -> None:
        """Act for lanes that are ahead as long as something else takes."""
        with torch.inference_mode():
            while busy():
                if self._playing:
                    self._serve(patient=False)

    def _draw(self, rollout: DeviceRollout) -> None:
        # One draw for all slots and steps: what a slot gets does not depend on which lane is served first.
        shape = rollout.n_steps, rollout.n_envs
        rollout.noise[:-1] = self.policy.distribution.noise(shape, self._generator)

    def _begin_lanes(self) -> None:
        """Let the lanes begin that are not ahead."""
        for lane, at in enumerate(self._at):
            if at is None:
                self._at[lane] = 0
                self._actor.place_at(lane, self._now, 0).copy_from(self._now.first_row)
            elif at == self._n_steps and self._runs_on:  # it has played the whole of this rollout and waits
                self._actor.place_at(lane, self._next, 0).copy_from(self._now.first_row)
            if self._actor.full:
                self._act()
        self._act()

    def _serve(self, *, patient: bool = True) -> None:
        """Take the outcome of the lanes that are ready, and act for them."""
        self._lanes.even_out()
        waiting = time.perf_counter()
        ready = self._lanes.ready_lanes(patient=patient)
        self._waited += time.perf_counter() - waiting
        self._playing -= len(ready)
        for lane in ready:
            at = self._at[lane]
            assert at is not None
            if at < self._n_steps:
                rollout, t = (self._now, at)
            else:
                rollout, t = (self._next, at - self._n_steps)
            if self._actor.full:  # one batch of observations on its way: act on it before another lane takes a place
                self._act()
            place = self._actor.place_at(lane, rollout, t + 1)
            row = self._rows[rollout.half][lane][t]
            row.obs, row.mask = place.obs, place.mask
            self._ended[rollout.half].extend((t, episode) for episode in self._lanes.recv_lane(lane, row))
            self._at[lane] = at + 1
            if t + 1 == self._n_steps:
                place.copy_to(self._now.first_row)
                if rollout is self._now and self._runs_on:  # the same observation is the first of the next rollout
                    if self._actor.full:
                        self._act()
                    self._actor.place_at(lane, self._next, 0).copy_from(self._now.first_row)
        self._act()

    def _act(self) -> None:
        """Act for the lanes that have a place, and let those step on that are not at the end of a rollout."""
        if not self._actor.placed:
            return
        for place, t, actions in self._actor.record():
            if t < self._n_steps:  # else it was only for the value after the last step
                self._lanes.send_lane(place.lane, actions)
                self._playing += 1

    def _turn_over(self) -> None:
        """The next rollout becomes this one; lanes that are ahead are in it already."""
        self._ended[self._now.half] = []
        self._drawn = self._runs_on
        self._at = [at - self._n_steps if self._runs_on and at is not None else None for at in self._at]
        self._runs_on = False  # the rollout after this one is being learned from
        if self._may_run_on:
            self._now, self._next = self._next, self._now

    def _finish(self, rollout: DeviceRollout, ended: Ended) -> None:
        """Log-probabilities of all steps in one batch, values to the host, and what each step bootstraps from."""
        policy, t = self.policy, rollout.n_steps
        for name, tensor in policy.afterwards(rollout.flat_fields(t)).items():
            rollout[name].copy_(tensor.view(t, -1, *tensor.shape[1:]))
        if not rollout.bootstrapped:
            return
        if not policy.values_with_actions:
            for name, tensor in policy.bootstrap(rollout.flat_obs(t + 1)).items():
                rollout[name].copy_(tensor.view(t + 1, -1, *tensor.shape[1:]))
        rollout.bring_home()
        bootstrap_cut(policy, self._envs, rollout, ended, rollout.device)


class Lanes(Protocol):
    """Envs whose parts may be stepped by themselves."""

    lanes: list[slice]
    """The slots of each lane."""

    def send_lane(self, lane: int, actions: np.ndarray) -> None:
        """Begin a step of one lane."""

    def ready_lanes(self, *, patient: bool = True) -> list[int]:
        """Lanes whose step has ended; waits for one if `patient`."""

    def recv_lane(self, lane: int, row: StepRow) -> Sequence[EndedEpisode]:
        """The outcome of a lane's step."""

    def even_out(self) -> None:
        """Make lanes equally fast, where something can be done for it."""


class OneLane:
    """All slots stepped together."""

    def __init__(self, envs: VectorEnv) -> None:
        self.envs = envs
        self.lanes = [slice(0, envs.n_envs)]

    def send_lane(self, lane: int, actions: np.ndarray) -> None:
        """Begin a step of all envs."""
        self.envs.send(actions)

    def ready_lanes(self, *, patient: bool = True) -> list[int]:
        """The one lane: `recv_lane` waits."""
        return [0]

    def recv_lane(self, lane: int, row: StepRow) -> Sequence[EndedEpisode]:
        """End the step of all envs."""
        return self.envs.recv(row)

    def even_out(self) -> None:
        """One lane has no other to wait for."""
