"""Rollouts that live on a GPU: observations cross the bus once and stay there.

Rewards and flags stay on the host, where the targets are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.buffer import Rollout


class DeviceRollout(Rollout):
    """T steps of N envs in GPU memory. `first_row`, on the host, is what a collection begins with."""

    def __init__(
        self,
        n_steps: int,
        envs: VectorEnv,
        policy: ActorCritic,
        device: torch.device,
        *,
        first: DeviceRollout | None = None,
    ) -> None:
        """`first` is the rollout whose memory this one is the other half of; the first has both halves."""
        self.device, self._first = device, first or self
        self.half = 0 if first is None else 1
        super().__init__(n_steps, envs, policy)

    def _allocate(self, envs: VectorEnv, policy: ActorCritic) -> None:
        if self.half == 0:
            row = envs.new_row()
            self.obs_arrays, self.mask_array = row.obs, row.mask
            self._allocate_rows(policy)
        first = self._first
        self.obs_arrays, self.mask_array = first.obs_arrays, first.mask_array
        self.obs = parts(self._steps_of, first.obs_rows)
        self.mask = None if self.mask_array is None else self._steps_of(first.mask_rows)
        self.action, self.params = self._steps_of(first.action_rows), self._steps_of(first.params_rows)
        self.noise, self.value = self._steps_of(first.noise_rows), self._steps_of(first.value_rows)
        self.log_prob = torch.zeros((self.n_steps, self.n_envs), device=self.device)
        self.host_value = pinned(torch.zeros(self.value.shape), self.device)
        self.action_arrays = list(torch.zeros(self.action.shape, dtype=self.action.dtype).numpy())

    def _allocate_rows(self, policy: ActorCritic) -> None:
        """Memory for two rollouts, [2·(T + 1)·N + 1] rows.

        The actor also runs on the observation after the last step, for its value; what it computes for nobody goes to the
        last row.
        """
        distribution, mask = policy.distribution, self.mask_array
        self.spare_row = 2 * (self.n_steps + 1) * self.n_envs
        self.obs_rows = parts(lambda a: self._rows_of(a.shape[1:], torch.from_numpy(a).dtype), self.obs_arrays)
        self.mask_rows = self._rows_of(() if mask is None else mask.shape[1:], torch.bool)
        self.action_rows = self._rows_of(distribution.action_shape, distribution.action_dtype)
        self.params_rows = self._rows_of((distribution.n_params,))
        self.noise_rows = self._rows_of((distribution.n_noise,))
        self.value_rows = self._rows_of(())

    def row_number(self, t: int) -> int:
        """Where step `t` of slot 0 lies among the rows."""
        return (self.half * (self.n_steps + 1) + t) * self.n_envs

    def _rows_of(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros((self.spare_row + 1, *shape), dtype=dtype, device=self.device)

    def _steps_of(self, rows: Tensor) -> Tensor:
        begin, end = self.row_number(0), self.row_number(self.n_steps + 1)
        return rows[begin:end].view(self.n_steps + 1, self.n_envs, *rows.shape[1:])

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
        return parts(lambda tensor: tensor[: self.length + 1].cpu().numpy(), self.obs)

    def slot_keys(self) -> list[bytes]:
        """What tells the last transitions of the slots apart: action and random projections of both observations."""
        t = self.length
        keys = [self.action_arrays[t - 1].reshape(self.n_envs, -1)]
        for tensor in self.obs.values() if isinstance(self.obs, dict) else [self.obs]:
            pair = tensor[t - 1 : t + 1].reshape(2, self.n_envs, -1).float()
            weights = torch.linspace(1.0, 2.0, pair.shape[-1], device=pair.device).sin_()
            keys.append((pair @ weights).t().cpu().numpy())
        return [b"".join(key[i].tobytes() for key in keys) for i in range(self.n_envs)]

    def state(self) -> dict[str, Any]:
        """What the next collection starts from."""
        return {
            "obs": parts(np.copy, self.obs_arrays),
            "mask": None if self.mask_array is None else self.mask_array.copy(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` saved."""
        self.length = self.n_steps
        for name, array in self.obs_arrays.items() if isinstance(self.obs_arrays, dict) else [("", self.obs_arrays)]:
            array[...] = state["obs"][name] if name else state["obs"]
        if self.mask_array is not None:
            self.mask_array[...] = state["mask"]


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """Memory that a GPU copies from and to by itself."""
    return tensor.pin_memory() if device.type == "cuda" else tensor


def parts(function: Callable[[Any], Any], tree: Any) -> Any:
    """The function of an observation, or of each of its parts."""
    return {key: function(value) for key, value in tree.items()} if isinstance(tree, dict) else function(tree)


def each_part(function: Callable[[Any, Any], Any], first: Any, second: Any) -> None:
    """Call the function with two observations, or with each pair of their parts."""
    for a, b in zip(first.values(), second.values()) if isinstance(first, dict) else [(first, second)]:
        function(a, b)
