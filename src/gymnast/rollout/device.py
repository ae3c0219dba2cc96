"""Rollouts that live on a GPU, and how they are filled.

Observations cross the bus once and stay there; actions come back once per step. Forward pass, choice of the action and
storing are one captured CUDA graph. Envs in worker processes are stepped lane by lane: whoever is ready is acted for, while
the others step, so no core waits for the slowest one and none for the GPU. A slot's next state depends on nothing but its own
actions, and its noise is drawn before; so the order in which lanes arrive changes no sample. Rewards and flags stay on the
host, where the targets are computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gymnast.envs.lanes import LanePool
from gymnast.envs.spaces import copy_rows
from gymnast.envs.spaces import row as rows_of
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv, some_rows
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import Ended, bootstrap_cut, check
from gymnast.timing import StageTimer

WARM_UPS = 2
"""Calls before a capture, in which libraries choose kernels and take their workspaces."""


class DeviceRollout(Rollout):
    """T steps of N envs in GPU memory. `first_row`, on the host, is what a collection begins with."""

    def __init__(self, n_steps: int, envs: VectorEnv, policy: ActorCritic, device: torch.device) -> None:
        self._device = device
        super().__init__(n_steps, envs, policy)

    def _allocate(self, envs: VectorEnv, policy: ActorCritic) -> None:
        row = envs.new_row()
        self.obs_arrays, self.mask_array = row.obs, row.mask
        # [(T + 1)·N + 1] rows: the actor also runs on the observation after the last step, for its value, and what it
        # computes for nobody goes to the last row.
        self.spare_row = (self.n_steps + 1) * self.n_envs
        distribution = policy.distribution
        self.obs_rows = _map(lambda a: self._rows_of(a.shape[1:], torch.from_numpy(a).dtype), row.obs)
        self.obs = _map(self._steps_of, self.obs_rows)
        self.mask_rows = self._rows_of(() if row.mask is None else row.mask.shape[1:], torch.bool)
        self.mask = None if row.mask is None else self._steps_of(self.mask_rows)
        self.action_rows = self._rows_of(distribution.action_shape, distribution.action_dtype)
        self.action = self._steps_of(self.action_rows)
        self.params_rows = self._rows_of((distribution.n_params,))
        self.params = self._steps_of(self.params_rows)
        self.noise_rows = self._rows_of((distribution.n_noise,))
        self.noise = self._steps_of(self.noise_rows)
        self.value_rows = self._rows_of(())
        self.value = self._steps_of(self.value_rows)
        self.log_prob = torch.zeros((self.n_steps, self.n_envs), device=self._device)
        self.host_value = self.pinned(torch.zeros(self.value.shape))
        actions = torch.zeros(self.action.shape, dtype=self.action.dtype).numpy()
        self.action_arrays = list(actions)

    def pinned(self, tensor: Tensor) -> Tensor:
        """Memory that a GPU copies from and to by itself."""
        return tensor.pin_memory() if self._device.type == "cuda" else tensor

    def _rows_of(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros((self.spare_row + 1, *shape), dtype=dtype, device=self._device)

    def _steps_of(self, rows: Tensor) -> Tensor:
        return rows[:-1].view(self.n_steps + 1, self.n_envs, *rows.shape[1:])

    def _make_views(self) -> None:
        self.first_row = StepRow(
            self.obs_arrays, self.reward[0], self.terminated[0], self.truncated[0], self.mask_array
        )
        self.rows = [
            StepRow(self.obs_arrays, self.reward[t], self.terminated[t], self.truncated[t], self.mask_array)
            for t in range(self.n_steps)
        ]

    def carry_over(self) -> None:
        """Nothing to do: a collection leaves its last observations in `first_row`."""

    def values(self) -> np.ndarray:
        """Values [T, N] on the host."""
        return self.host_value[: self.length].numpy()

    def host_obs(self) -> Any:
        """A copy of all observations [T + 1, N, …] on the host, for looking at them."""
        return _map(lambda tensor: tensor[: self.length + 1].cpu().numpy(), self.obs)

    def slot_keys(self) -> list[bytes]:
        """What tells the last transitions of the slots apart: action and random projections of both observations."""
        t = self.length
        keys = [self.action_arrays[t - 1].reshape(self.n_envs, -1)]
        for tensor in self.obs.values() if isinstance(self.obs, dict) else [self.obs]:
            pair = tensor[t - 1 : t + 1].flatten(2).float()
            weights = torch.linspace(1.0, 2.0, pair.shape[-1], device=pair.device).sin_()
            keys.append((pair @ weights).t().cpu().numpy())
        return [b"".join(key[i].tobytes() for key in keys) for i in range(self.n_envs)]

    def state(self) -> dict[str, Any]:
        """What the next collection starts from."""
        return {
            "obs": _map(np.copy, self.obs_arrays),
            "mask": None if self.mask_array is None else self.mask_array.copy(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` saved."""
        self.length = self.n_steps
        for name, array in self.obs_arrays.items() if isinstance(self.obs_arrays, dict) else [("", self.obs_arrays)]:
            array[...] = state["obs"][name] if name else state["obs"]
        if self.mask_array is not None:
            self.mask_array[...] = state["mask"]


class DeviceCollector:
    """Fills a `DeviceRollout`. `policy` acts; it may be a copy of the one that learns."""

    def __init__(self, policy: ActorCritic, envs: VectorEnv, rollout: DeviceRollout, *, by_lanes: bool) -> None:
        self.policy, self.rollout, self._envs = policy, rollout, envs
        self._lanes: Lanes = envs if by_lanes and isinstance(envs, LanePool) else OneLane(envs)
        self._slots = self._lanes.lanes
        self._rows = [[some_rows(row, slots) for row in rollout.rows] for slots in self._slots]
        self._actor = Actor(policy, rollout, self._slots)

    def __call__(
        self, generator: torch.Generator, timer: StageTimer, on_step: Callable[[int], None] | None = None
    ) -> Ended:
        """Play `rollout.n_steps` steps from the observations in `first_row`; return the episodes that ended."""
        rollout = self.rollout
        begin = time.perf_counter()
        rollout.length = rollout.n_steps
        with torch.inference_mode():
            rollout.noise[:-1] = self.policy.distribution.noise((rollout.n_steps, rollout.n_envs), generator)
            ended, in_env = self._play(on_step)
            ended.sort(key=lambda found: (found[0], found[1].index))  # as if all slots had been stepped together
            self._finish(ended)
        timer.add("env", in_env)
        timer.add("policy", time.perf_counter() - begin - in_env)
        check(rollout, self._envs)
        return ended

    def _play(self, on_step: Callable[[int], None] | None) -> tuple[Ended, float]:
        """Every lane to its last step; also the seconds in which there was nothing to do but wait for envs."""
        rollout, lanes, actor, n_steps = self.rollout, self._lanes, self._actor, self.rollout.n_steps
        ended: Ended = []
        waited = 0.0
        at = [0] * len(self._slots)  # steps that each lane has played
        playing = 0
        for lane in range(len(at)):
            actor.place(lane, 0).copy_from(rollout.first_row)
            if actor.full or lane == len(at) - 1:
                playing += self._send(at)
        while playing:
            waiting = time.perf_counter()
            ready = lanes.ready_lanes()
            waited += time.perf_counter() - waiting
            playing -= len(ready)
            for lane in ready:
                row, t = self._rows[lane][at[lane]], at[lane]
                place = actor.place(lane, t + 1)
                row.obs, row.mask = place.obs, place.mask
                for episode in lanes.recv_lane(lane, row):
                    ended.append((t, episode))
                at[lane] = t + 1
                if t + 1 == n_steps:
                    place.copy_to(rollout.first_row)
                if actor.full:
                    playing += self._send(at)
            if actor.placed:
                playing += self._send(at)
            if on_step is not None and 0 in ready and at[0] % 64 == 0:
                on_step(at[0])
        return ended, waited

    def _send(self, at: list[int]) -> int:
        """Act for the lanes that have a place and let those step on that are not at their end; how many do."""
        sent = 0
        for lane, actions in self._actor():
            if at[lane] < self.rollout.n_steps:  # else it was only for the value after the last step
                self._lanes.send_lane(lane, actions)
                sent += 1
        return sent

    def _finish(self, ended: Ended) -> None:
        """Log-probabilities of all steps in one batch, values to the host, and what each step bootstraps from."""
        rollout, policy, t = self.rollout, self.policy, self.rollout.n_steps
        log_prob, _, _ = policy.distribution.evaluate(
            rollout.params[:t].flatten(0, 1), rollout.action[:t].flatten(0, 1)
        )
        rollout.log_prob.copy_(log_prob.view(t, -1))
        if not policy.has_critic:
            return
        if not policy.shared:
            rollout.value.copy_(policy.values(rollout.flat_obs(t + 1)).view(t + 1, -1))
        rollout.host_value.copy_(rollout.value)
        rollout.next_value[:] = rollout.host_value[1:].numpy()
        bootstrap_cut(policy, self._envs, rollout, ended, rollout.value.device)


class Lanes(Protocol):
    """Envs whose parts may be stepped by themselves."""

    lanes: list[slice]
    """The slots of each lane."""

    def send_lane(self, lane: int, actions: np.ndarray) -> None:
        """Begin a step of one lane."""

    def ready_lanes(self) -> list[int]:
        """Lanes whose step has ended; waits for one."""

    def recv_lane(self, lane: int, row: StepRow) -> Sequence[EndedEpisode]:
        """The outcome of a lane's step."""


class OneLane:
    """All slots stepped together."""

    def __init__(self, envs: VectorEnv) -> None:
        self.envs = envs
        self.lanes = [slice(0, envs.n_envs)]

    def send_lane(self, lane: int, actions: np.ndarray) -> None:
        """Begin the step."""
        self.envs.send(actions)

    def ready_lanes(self) -> list[int]:
        """The one lane: `recv_lane` waits."""
        return [0]

    def recv_lane(self, lane: int, row: StepRow) -> Sequence[EndedEpisode]:
        """End the step."""
        return self.envs.recv(row)


class Actor:
    """Acts for several lanes at once, by one graph of a fixed size. Places that no lane takes are written to a spare row."""

    def __init__(self, policy: ActorCritic, rollout: DeviceRollout, slots: list[slice]) -> None:
        self._policy, self._rollout, self._slots = policy, rollout, slots
        width = max(one.stop - one.start for one in slots)
        n_places = -(-len(slots) // 2)  # while half of the lanes is acted for, the other half steps
        size = n_places * width
        device, pinned = rollout.value.device, rollout.pinned
        self._host_obs = _map(
            lambda a: pinned(torch.zeros((size, *a.shape[1:]), dtype=torch.from_numpy(a).dtype)), rollout.obs_arrays
        )
        self._obs = _map(lambda tensor: tensor.to(device), self._host_obs)
        mask = rollout.mask_array
        self._host_mask = None if mask is None else pinned(torch.ones((size, *mask.shape[1:]), dtype=torch.bool))
        self._mask = None if self._host_mask is None else self._host_mask.to(device)
        self._host_rows = pinned(torch.full((size,), rollout.spare_row))
        self._rows = self._host_rows.to(device)
        shape = (size, *rollout.action.shape[2:])
        self._host_actions = pinned(torch.zeros(shape, dtype=rollout.action.dtype))
        self._actions = self._host_actions.numpy()
        arrays = _map(lambda tensor: tensor.numpy(), self._host_obs)
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

    def place(self, lane: int, t: int) -> Place:
        """Where the observations of a lane before step `t` are to be written."""
        place = self._places[len(self.placed)][lane]
        np.add(place.slots, t * self._rollout.n_envs, out=place.rows)
        place.t = t
        self.placed.append(place)
        return place

    def __call__(self) -> list[tuple[int, np.ndarray]]:
        """The lanes that have a place, which become free, and their actions."""
        if self._launch is None:
            self._launch = launcher(self._act, self._rows.device)
        self._launch()
        self._host_rows.fill_(self._rollout.spare_row)
        chosen = []
        for place in self.placed:
            kept = self._rollout.action_arrays[place.t][self._slots[place.lane]]
            kept[...] = self._actions[place.at]
            chosen.append((place.lane, kept))
        self.placed = []
        return chosen

    def _act(self) -> None:
        """What the graph does: everything between observations and actions on the host."""
        rollout = self._rollout
        self._rows.copy_(self._host_rows, non_blocking=True)
        _each(lambda ours, staged: ours.copy_(staged, non_blocking=True), self._obs, self._host_obs)
        if self._mask is not None:
            self._mask.copy_(self._host_mask, non_blocking=True)  # type: ignore[arg-type]
            rollout.mask_rows.index_copy_(0, self._rows, self._mask)
        action, params, value = self._policy.act(self._obs, rollout.noise_rows[self._rows], self._mask)
        _each(lambda stored, now: stored.index_copy_(0, self._rows, now), rollout.obs_rows, self._obs)
        rollout.action_rows.index_copy_(0, self._rows, action)
        rollout.params_rows.index_copy_(0, self._rows, params)
        if value is not None:
            rollout.value_rows.index_copy_(0, self._rows, value)
        self._host_actions.copy_(action, non_blocking=True)


class Place:
    """Where a lane's observations lie in the actor's batch."""

    def __init__(self, lane: int, slots: slice, at: slice, obs: Any, mask: Any, rows: np.ndarray) -> None:
        self.lane, self.at, self.t = lane, at, 0
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


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    return {key: function(value) for key, value in tree.items()} if isinstance(tree, dict) else function(tree)


def _each(function: Callable[[Any, Any], Any], first: Any, second: Any) -> None:
    for a, b in zip(first.values(), second.values()) if isinstance(first, dict) else [(first, second)]:
        function(a, b)
