"""Acting for several lanes of envs at once: everything between what they wrote and what they are given.

On a GPU that is one captured CUDA graph of a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gymnast.envs.spaces import copy_rows
from gymnast.envs.spaces import row as rows_of
from gymnast.envs.vector import StepRow
from gymnast.policies.base import Policy
from gymnast.rollout.buffer import parts
from gymnast.rollout.device import DeviceRollout, each_part, pinned
from gymnast.rollout.graphs import captured

NOISE_STEPS = 64
"""Steps for which a slot draws its noise at once."""


class LaneActor:
    """A policy with places for the observations of some lanes."""

    def __init__(self, policy: Policy, row: StepRow, slots: list[slice], device: torch.device) -> None:
        self.policy = policy
        width = max(one.stop - one.start for one in slots)
        n_places = -(-len(slots) // 2)  # while half of the lanes is acted for, the other half steps
        size = self.size = n_places * width
        self.device = device
        self._host_obs = parts(lambda a: self._host((size, *a.shape[1:]), torch.from_numpy(a).dtype), row.obs)
        self.obs = parts(lambda tensor: tensor.to(device), self._host_obs)
        self._host_mask: Tensor | None = None
        self.mask: Tensor | None = None
        if row.mask is not None:
            self._host_mask = self._host((size, *row.mask.shape[1:]), torch.bool).fill_(True)
            self.mask = self._host_mask.to(device)
        distribution = policy.distribution
        self._host_actions = self._host((size, *distribution.action_shape), distribution.action_dtype)
        self._actions = self._host_actions.numpy()
        arrays = parts(lambda tensor: tensor.numpy(), self._host_obs)
        masks = None if self._host_mask is None else self._host_mask.numpy()
        self._places = [
            [
                Place(lane, one, slice(k * width, k * width + one.stop - one.start), arrays, masks)
                for lane, one in enumerate(slots)
            ]
            for k in range(n_places)
        ]
        self.placed: list[Place] = []
        self._launch: Callable[[], None] | None = None

    def _host(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return pinned(torch.zeros(shape, dtype=dtype), self.device)

    @property
    def full(self) -> bool:
        """Whether no place is free."""
        return len(self.placed) == len(self._places)

    def place(self, lane: int) -> Place:
        """Where the observations of a lane are to be written."""
        place = self._places[len(self.placed)][lane]
        self.placed.append(place)
        return place

    def act(self) -> list[tuple[Place, np.ndarray]]:
        """The places that are taken, which become free, and the actions of their lanes, valid until the next call."""
        if self._launch is None:
            self._launch = launcher(self._copy_and_choose, self.device)
        self._launch()
        placed, self.placed = self.placed, []
        return [(place, self._actions[place.at]) for place in placed]

    def _copy_and_choose(self) -> None:
        each_part(lambda ours, staged: ours.copy_(staged, non_blocking=True), self.obs, self._host_obs)
        if self.mask is not None and self._host_mask is not None:
            self.mask.copy_(self._host_mask, non_blocking=True)
        self._host_actions.copy_(self.choose(), non_blocking=True)

    def choose(self) -> Tensor:
        """Actions for all places."""
        raise NotImplementedError


class Place:
    """Where a lane's observations lie in the actor's batch."""

    def __init__(self, lane: int, slots: slice, at: slice, obs: Any, mask: Any) -> None:
        self.lane, self.slots, self.at = lane, slots, at
        self.obs = rows_of(obs, at)
        self.mask = None if mask is None else mask[at]

    def copy_from(self, row: StepRow) -> None:
        """Take the lane's observations from a row of all slots."""
        copy_rows(self.obs, rows_of(row.obs, self.slots))
        if self.mask is not None:
            self.mask[...] = row.mask[self.slots]  # type: ignore[index]

    def copy_to(self, row: StepRow) -> None:
        """Put the lane's observations into a row of all slots."""
        copy_rows(rows_of(row.obs, self.slots), self.obs)
        if self.mask is not None:
            row.mask[self.slots] = self.mask  # type: ignore[index]


class RecordingActor(LaneActor):
    """Samples, and stores all it sees and does in the rollout; for places that no lane takes, in a spare row."""

    def __init__(self, policy: Policy, rollout: DeviceRollout, slots: list[slice]) -> None:
        super().__init__(policy, rollout.first_row, slots, rollout.device)
        self._rollout = rollout
        self._host_rows = self._host((self.size,), torch.int64).fill_(rollout.spare_row)
        self._row_numbers = self._host_rows.numpy()
        self._rows = self._host_rows.to(rollout.device)
        self._steps: list[tuple[DeviceRollout, int]] = []

    def place_at(self, lane: int, rollout: DeviceRollout, t: int) -> Place:
        """The place of a lane whose next step is step `t` of a rollout."""
        place = self.place(lane)
        start = rollout.row_number(t)
        self._row_numbers[place.at] = np.arange(start + place.slots.start, start + place.slots.stop)
        self._steps.append((rollout, t))
        return place

    def record(self) -> list[tuple[Place, int, np.ndarray]]:
        """Places, steps and actions of those that had a place."""
        chosen = []
        steps, self._steps = self._steps, []
        for (place, actions), (rollout, t) in zip(self.act(), steps, strict=True):
            kept = rollout.action_arrays[t][place.slots]
            kept[...] = actions
            chosen.append((place, t, kept))
        self._row_numbers.fill(self._rollout.spare_row)
        return chosen

    def choose(self) -> Tensor:
        """Sample by the rollout's noise, and store."""
        rollout, rows = self._rollout, self._rows
        rows.copy_(self._host_rows, non_blocking=True)
        outputs = self.policy.act(self.obs, rollout.noise_rows[rows], self.mask)
        each_part(lambda stored, now: stored.index_copy_(0, rows, now), rollout.obs_rows, self.obs)
        if self.mask is not None:
            rollout.mask_rows.index_copy_(0, rows, self.mask)
        for name, tensor in outputs.items():
            rollout.field_rows[name].index_copy_(0, rows, tensor)
        return outputs["action"]


class EvaluatingActor(LaneActor):
    """Acts greedily, or by noise that each slot draws for itself, so that neither lanes nor their order change anything."""

    def __init__(
        self, policy: Policy, row: StepRow, slots: list[slice], device: torch.device, seeds: Sequence[int] | None
    ) -> None:
        """`seeds`, one per slot, make it sample."""
        super().__init__(policy, row, slots, device)
        if seeds is None:
            self._generators = None
        else:
            self._generators = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
        n_noise = policy.distribution.n_noise
        self._drawn = torch.zeros((NOISE_STEPS, len(row.reward), n_noise))
        self._steps = [0] * len(slots)
        self._host_noise = self._host((self.size, n_noise), torch.float32)
        self._noise = self._host_noise.to(device)

    def place(self, lane: int) -> Place:
        """Where the observations of a lane are to be written."""
        place = super().place(lane)
        if self._generators is not None:
            t = self._steps[lane] % NOISE_STEPS
            if t == 0:
                for slot in range(place.slots.start, place.slots.stop):
                    self._drawn[:, slot] = self.policy.distribution.noise((NOISE_STEPS,), self._generators[slot])
            self._host_noise[place.at] = self._drawn[t, place.slots]
            self._steps[lane] += 1
        return place

    def choose(self) -> Tensor:
        """The actions alone: nothing is learned from an evaluation."""
        if self._generators is not None:
            self._noise.copy_(self._host_noise, non_blocking=True)
        noise = None if self._generators is None else self._noise
        return self.policy.act(self.obs, noise, self.mask)["action"]


def launcher(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """A function that does the same as one graph, and waits until it is done."""
    if device.type == "cpu":
        return function
    graph, done = captured(function, "acting"), torch.cuda.Event()

    def launch() -> None:
        graph.replay()
        done.record()
        done.synchronize()

    return launch
