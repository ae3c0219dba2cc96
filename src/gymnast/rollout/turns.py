"""Filling a rollout lane by lane on a CPU: while workers step some envs, this process acts for others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import some_rows
from gymnast.policies.base import Policy
from gymnast.rollout.buffer import Rollout, parts
from gymnast.rollout.collect import Ended, OnStep, StepCollector, check, finish
from gymnast.timing import StageTimer


class TurnsCollector(StepCollector):
    """Steps lane by lane, in ordinary memory."""

    _envs: LanePool

    def collect(self, timer: StageTimer, on_step: OnStep | None = None, *, run_on: bool = False) -> Ended:
        """Fill the rollout, one lane after the other."""
        return collect_by_turns(self._policy, self._envs, self.rollout, self._generator, timer, on_step)


def turns_pay(policy: Policy, envs: LanePool) -> bool:
    """Whether acting for one lane at a time keeps up with the workers.

    With images and more than two lanes, one batched forward pass on all cores serves all of them faster. What a policy
    remembers of each env is kept for all slots together.
    """
    if policy.state_shape is not None:
        return False
    return not policy.encoder.images or len(envs.lanes) == 2


def collect_by_turns(
    policy: Policy,
    envs: LanePool,
    rollout: Rollout,
    generator: torch.Generator,
    timer: StageTimer,
    on_step: OnStep | None = None,
) -> Ended:
    """What `collect` does. A lane is always acted for by itself, so no bit depends on who comes first."""
    ended: Ended = []
    n_steps, slots = rollout.n_steps, envs.lanes
    rows = [[some_rows(row, lane) for row in rollout.rows] for lane in slots]
    at = [0] * len(slots)
    began, waited = time.perf_counter(), 0.0
    rollout.length = n_steps
    with torch.inference_mode(), policy.encoder.held():
        noise = policy.distribution.noise((n_steps, rollout.n_envs), generator)

        def act(lane: int) -> None:
            t, here = at[lane], slots[lane]
            mask = rollout.mask_steps[t]
            obs = parts(lambda part: part[here], rollout.obs_steps[t])
            outputs = policy.act(obs, noise[t, here], None if mask is None else mask[here])
            for name, tensor in outputs.items():
                rollout.steps[name][t][here] = tensor
            envs.send_lane(lane, rollout.action_arrays[t][here])

        with _one_thread():
            for lane in range(len(slots)):
                act(lane)
            while min(at) < n_steps:
                envs.even_out()
                asked = time.perf_counter()
                ready = envs.ready_lanes()
                waited += time.perf_counter() - asked
                for lane in ready:
                    ended.extend((at[lane], episode) for episode in envs.recv_lane(lane, rows[lane][at[lane]]))
                    at[lane] += 1
                    if at[lane] < n_steps:
                        act(lane)
                    if on_step is not None and lane == 0 and at[0] % 64 == 0:
                        on_step(at[0])
        ended.sort(key=lambda found: (found[0], found[1].index))  # as if all slots had been stepped together
        finish(policy, envs, rollout, ended, generator.device)
    timer.add("env", waited)
    timer.add("policy", time.perf_counter() - began - waited)
    check(rollout, envs)
    return ended


@contextmanager
def _one_thread() -> Iterator[None]:
    """Leave the other cores to the workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
