"""Rollouts that live on a GPU: observations cross the bus once and stay there.

Rewards and flags stay on the host, where the targets are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.policies.base import Field, Policy
from gymnast.rollout.buffer import Rollout, nested, parts
from gymnast.rollout.hashing import combined, tensor_hashes


class DeviceRollout(Rollout):
    """T steps of N envs in GPU memory. `first_row`, on the host, is what a collection begins with."""

    def __init__(
        self,
        n_steps: int,
        envs: VectorEnv,
        policy: Policy,
        device: torch.device,
        further: Sequence[Field] = (),
        *,
        first: DeviceRollout | None = None,
    ) -> None:
        """`first` is the rollout whose memory this one is the other half of; the first has both halves."""
        self.device, self._first = device, first or self
        self.half = 0 if first is None else 1
        super().__init__(n_steps, envs, policy, further)

    def _allocate(self, envs: VectorEnv, policy: Policy) -> None:
        if self.half == 0:
            row = envs.new_row()
            self.obs_arrays, self.mask_array = row.obs, row.mask
            self._allocate_rows(policy)
        first = self._first
        self.obs_arrays, self.mask_array = first.obs_arrays, first.mask_array
        self.obs = parts(self._steps_of, first.obs_rows)
        if self.mask_array is None:
            self.mask = None
        else:
            self.mask = self._steps_of(first.mask_rows)
        self.noise = self._steps_of(first.noise_rows)
        for name, field in self.fields.items():
            if field.side == "host":
                self._kept[name] = self._zeros(field)
            else:
                self._kept[name] = self._steps_of(first.field_rows[name])[: self.n_steps + field.after_last]
        self._host = {name: pinned(torch.zeros(self[name].shape), self.device) for name in self.bootstrapped}
        # One more than there are steps: what is chosen after the last one is not done.
        action = self.fields["action"]
        chosen = torch.zeros((self.n_steps + 1, self.n_envs, *action.shape), dtype=action.dtype)
        self.action_arrays = list(chosen.numpy())

    def _allocate_rows(self, policy: Policy) -> None:
        """Memory for two rollouts, [2·(T + 1)·N + 1] rows.

        The actor also runs on the observation after the last step, for its value; what it computes for nobody goes to the
        last row.
        """
        mask = self.mask_array
        self.spare_row = 2 * (self.n_steps + 1) * self.n_envs
        self.obs_rows = parts(lambda a: self._rows_of(a.shape[1:], torch.from_numpy(a).dtype), self.obs_arrays)
        self.mask_rows = self._rows_of(() if mask is None else mask.shape[1:], torch.bool)
        self.noise_rows = self._rows_of((policy.distribution.n_noise,))
        self.field_rows = {
            name: self._rows_of(field.shape, field.dtype)
            for name, field in self.fields.items()
            if field.side == "device"
        }

    def row_number(self, t: int) -> int:
        """Where step `t` of slot 0 lies among the rows."""
        return (self.half * (self.n_steps + 1) + t) * self.n_envs

    def _rows_of(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros((self.spare_row + 1, *shape), dtype=dtype, device=self.device)

    def _steps_of(self, rows: Tensor) -> Tensor:
        begin, end = self.row_number(0), self.row_number(self.n_steps + 1)
        return rows[begin:end].view(self.n_steps + 1, self.n_envs, *rows.shape[1:])

    def _make_views(self) -> None:
        self.rows = [self._row(t) for t in range(self.n_steps)]
        self.first_row = self._row(0)

    def _row(self, t: int) -> StepRow:
        flags = self.terminated[t], self.truncated[t]
        return StepRow(self.obs_arrays, self.reward[t], *flags, self.mask_array, self._own_reward_at(t))

    def carry_over(self) -> None:
        """Nothing to do: a collection leaves its last observations in `first_row`."""

    def bring_home(self) -> None:
        """Copy the bootstrapped fields to the host, where targets are computed."""
        for name, array in self._host.items():
            array.copy_(self[name])
            self.next[name][:] = array[1:].numpy()

    def host(self, name: str) -> np.ndarray:
        """A bootstrapped field [T, N] on the host."""
        return self._host[name][: self.length].numpy()

    def host_obs(self) -> Any:
        """A copy of all observations [T + 1, N, …] on the host, for looking at them."""
        return parts(lambda tensor: tensor[: self.length + 1].cpu().numpy(), self.obs)

    def _obs_hashes(self) -> np.ndarray:
        """Of all observations [T + 1, N], computed where they lie."""
        end = self.length + 1
        if isinstance(self.obs, dict):
            return combined(*(tensor_hashes(tensor[:end]) for tensor in self.obs.values()))
        return tensor_hashes(self.obs[:end])

    def _actions(self) -> np.ndarray:
        return np.stack(self.action_arrays[: self.length])

    def _carried(self) -> dict[str, np.ndarray]:
        """The row on the host that a collection leaves what it led to in, as an array of one row."""
        arrays = self.obs_arrays
        if isinstance(arrays, dict):
            carried = {f"obs.{name}": array for name, array in arrays.items()}
        else:
            carried = {"obs": arrays}
        if self.mask_array is not None:
            carried["mask"] = self.mask_array
        return {name: array[None] for name, array in carried.items()}

    def state(self) -> dict[str, Any]:
        """What the next collection starts from."""
        now = {name: array[0].copy() for name, array in self._carried().items()}
        return nested(now, isinstance(self.obs_arrays, dict))


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """Memory that a GPU copies from and to by itself."""
    if device.type == "cuda":
        return tensor.pin_memory()
    return tensor


def each_part(function: Callable[[Any, Any], Any], first: Any, second: Any) -> None:
    """Call the function with two observations, or with each pair of their parts."""
    for a, b in zip(first.values(), second.values()) if isinstance(first, dict) else [(first, second)]:
        function(a, b)
