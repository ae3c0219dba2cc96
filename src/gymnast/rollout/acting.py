"""Acting on a GPU: everything between what envs wrote and what they are given, as one captured CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gymnast.envs.spaces import copy_rows
from gymnast.envs.spaces import row as rows_of
from gymnast.envs.vector import StepRow
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.device import DeviceRollout, each_part, parts

WARM_UPS = 2
"""Calls before a capture, in which libraries choose kernels and take their workspaces."""


class Actor:
    """Acts for several lanes at once, by one graph of a fixed size. Places that no lane takes are written to a spare row."""

    def __init__(self, policy: ActorCritic, rollout: DeviceRollout, slots: list[slice]) -> None:
        self._policy, self._rollout, self._slots = policy, rollout, slots
        width = max(one.stop - one.start for one in slots)
        n_places = -(-len(slots) // 2)  # while half of the lanes is acted for, the other half steps
        size = n_places * width
        device, pinned = rollout.value.device, rollout.pinned
        self._host_obs = parts(
            lambda a: pinned(torch.zeros((size, *a.shape[1:]), dtype=torch.from_numpy(a).dtype)), rollout.obs_arrays
        )
        self._obs = parts(lambda tensor: tensor.to(device), self._host_obs)
        mask = rollout.mask_array
        self._host_mask = None if mask is None else pinned(torch.ones((size, *mask.shape[1:]), dtype=torch.bool))
        self._mask = None if self._host_mask is None else self._host_mask.to(device)
        self._host_rows = pinned(torch.full((size,), rollout.spare_row))
        self._rows = self._host_rows.to(device)
        shape = (size, *rollout.action.shape[2:])
        self._host_actions = pinned(torch.zeros(shape, dtype=rollout.action.dtype))
        self._actions = self._host_actions.numpy()
        arrays = parts(lambda tensor: tensor.numpy(), self._host_obs)
        masks = None if self._host_mask is None else self._host_mask.numpy()
        rows = self._host_rows.numpy()
        self._places = [
            [
                Place(lane, one, slice(k * width, k * width + one.stop - one.start), arrays, masks, rows)
                for lane, one in enumerate(slots)
            ]
            for k in range(n_places)
        ]
        self.placed: list[Place] = []
        self._launch: Callable[[], None] | None = None

    @property
    def full(self) -> bool:
        """Whether no place is free."""
        return len(self.placed) == len(self._places)

    def place(self, lane: int, rollout: DeviceRollout, t: int) -> Place:
        """Where the observations of a lane before step `t` of a rollout are to be written."""
        place = self._places[len(self.placed)][lane]
        np.add(place.slots, rollout.row_number(t), out=place.rows)
        place.rollout, place.t = rollout, t
        self.placed.append(place)
        return place

    def __call__(self) -> list[tuple[Place, np.ndarray]]:
        """The places that are taken, which become free, and the actions of their lanes."""
        if self._launch is None:
            self._launch = launcher(self._act, self._rows.device)
        self._launch()
        self._host_rows.fill_(self._rollout.spare_row)
        chosen = []
        for place in self.placed:
            kept = place.rollout.action_arrays[place.t][self._slots[place.lane]]
            kept[...] = self._actions[place.at]
            chosen.append((place, kept))
        self.placed = []
        return chosen

    def _act(self) -> None:
        """What the graph does: everything between observations and actions on the host."""
        rollout = self._rollout
        self._rows.copy_(self._host_rows, non_blocking=True)
        each_part(lambda ours, staged: ours.copy_(staged, non_blocking=True), self._obs, self._host_obs)
        if self._mask is not None:
            self._mask.copy_(self._host_mask, non_blocking=True)  # type: ignore[arg-type]
            rollout.mask_rows.index_copy_(0, self._rows, self._mask)
        action, params, value = self._policy.act(self._obs, rollout.noise_rows[self._rows], self._mask)
        each_part(lambda stored, now: stored.index_copy_(0, self._rows, now), rollout.obs_rows, self._obs)
        rollout.action_rows.index_copy_(0, self._rows, action)
        rollout.params_rows.index_copy_(0, self._rows, params)
        if value is not None:
            rollout.value_rows.index_copy_(0, self._rows, value)
        self._host_actions.copy_(action, non_blocking=True)


class Place:
    """Where a lane's observations lie in the actor's batch."""

    def __init__(self, lane: int, slots: slice, at: slice, obs: Any, mask: Any, rows: np.ndarray) -> None:
        self.lane, self.at, self.t = lane, at, 0
        self.rollout: DeviceRollout
        self.slots, self.rows = np.arange(slots.start, slots.stop), rows[at]
        self.obs = rows_of(obs, at)
        self.mask = None if mask is None else mask[at]
        self._range = slots

    def copy_from(self, row: StepRow) -> None:
        """Take the lane's observations from a row of all slots."""
        copy_rows(self.obs, rows_of(row.obs, self._range))
        if self.mask is not None:
            self.mask[...] = row.mask[self._range]  # type: ignore[index]

    def copy_to(self, row: StepRow) -> None:
        """Put the lane's observations into a row of all slots."""
        copy_rows(rows_of(row.obs, self._range), self.obs)
        if self.mask is not None:
            row.mask[self._range] = self.mask  # type: ignore[index]


def launcher(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """A function that does the same as one graph, and waits until it is done."""
    if device.type == "cpu":
        return function
    graph, done = captured(function), torch.cuda.Event()

    def launch() -> None:
        graph.replay()
        done.record()
        done.synchronize()

    return launch


def captured(function: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """The kernels of a function as one graph; it is called a few times first."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph
