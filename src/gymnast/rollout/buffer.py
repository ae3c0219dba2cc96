"""The rollout: preallocated [T, N] arrays that envs write into and the update reads from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gymnast.envs.spaces import allocate
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.policies.actor_critic import ActorCritic

Observation = Tensor | dict[str, Tensor]


@dataclass
class Batch:
    """Flat samples [B, …] for the update."""

    obs: Observation
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    target: Tensor
    """What the critic should predict."""
    mask: Tensor | None = None

    def __len__(self) -> int:
        return self.action.shape[0]

    def _map(self, function: Any) -> Batch:
        values: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, dict):
                values[field.name] = {key: function(part) for key, part in value.items()}
            else:
                values[field.name] = None if value is None else function(value)
        return Batch(**values)

    def select(self, index: Tensor) -> Batch:
        """The samples of `index`, copied; one gather per field and epoch, minibatches are then views."""
        return self._map(lambda tensor: tensor.index_select(0, index))

    def split(self, size: int) -> list[Batch]:
        """Consecutive minibatches of `size` (the last may be smaller), as views."""
        n = len(self)
        if size >= n:
            return [self]
        return [self._map(lambda tensor, i=i: tensor[i : i + size]) for i in range(0, n, size)]

    def in_place(self) -> Batch:
        """The batch for captured graphs, which read tensors where they lie: what a rollout keeps is shared, the rest copied."""
        kept = replace(self)
        for name in ("log_prob", "value", "advantage", "target"):
            setattr(kept, name, getattr(self, name).clone())
        return kept

    def take(self, other: Batch) -> None:
        """The next samples of the same rollout, written to where these lie."""
        for name in ("log_prob", "value", "advantage", "target"):
            getattr(self, name).copy_(getattr(other, name))

    def to(self, device: torch.device) -> Batch:
        """The batch on `device`; what is there already is not copied."""
        return self._map(lambda tensor: tensor.to(device))


class Rollout:
    """T steps of N envs. Allocated once, in ordinary memory that numpy and torch share."""

    def __init__(self, n_steps: int, envs: VectorEnv, policy: ActorCritic) -> None:
        shape = (n_steps, envs.n_envs)
        self.n_steps, self.n_envs = shape
        self.length = n_steps
        """Steps filled by the last collection; below n_steps only when whole episodes are collected."""
        self.reward = np.zeros(shape, np.float32)
        self.terminated = np.zeros(shape, np.bool_)
        self.truncated = np.zeros(shape, np.bool_)
        self.next_value = np.zeros(shape, np.float32)
        """Value of the state each step led to: the next row's, the final observation's where an episode was cut off."""
        self.valid: np.ndarray | None = None
        """Samples that count; None means all of them."""
        self.obs_arrays: Any
        self.mask_array: np.ndarray | None
        self.obs: Observation
        self.mask: Tensor | None
        self._allocate(envs, policy)
        self._make_views()

    def _allocate(self, envs: VectorEnv, policy: ActorCritic) -> None:
        shape, distribution = (self.n_steps, self.n_envs), policy.distribution
        self.obs_arrays = policy.encoder.laid_out(allocate(envs.observation_space, (self.n_steps + 1, self.n_envs)))
        self.mask_array = envs.new_mask((self.n_steps + 1, self.n_envs))
        self.action = torch.zeros((*shape, *distribution.action_shape), dtype=distribution.action_dtype)
        self.params = torch.zeros((*shape, distribution.n_params))
        self.log_prob = torch.zeros(shape)
        self.value = torch.zeros((self.n_steps + 1, self.n_envs))
        self.obs = (
            {key: torch.from_numpy(array) for key, array in self.obs_arrays.items()}
            if isinstance(self.obs_arrays, dict)
            else torch.from_numpy(self.obs_arrays)
        )
        self.mask = None if self.mask_array is None else torch.from_numpy(self.mask_array)

    def _make_views(self) -> None:
        """Views of every step, made once: slicing in the loop would cost more than a small matrix product."""
        n_steps = self.n_steps
        self.rows = [self._row(t) for t in range(n_steps)]
        self.first_row = StepRow(
            obs=self._obs_array_at(0),
            reward=self.reward[0],
            terminated=self.terminated[0],
            truncated=self.truncated[0],
            mask=None if self.mask_array is None else self.mask_array[0],
        )
        self.obs_steps = [self.obs_at(t) for t in range(n_steps + 1)]
        self.mask_steps = [None if self.mask is None else self.mask[t] for t in range(n_steps + 1)]
        self.action_steps = list(self.action.unbind(0))
        self.params_steps = list(self.params.unbind(0))
        self.value_steps = list(self.value.unbind(0))
        self.action_arrays = [step.numpy() for step in self.action_steps]

    def _obs_array_at(self, t: int) -> Any:
        if isinstance(self.obs_arrays, dict):
            return {key: array[t] for key, array in self.obs_arrays.items()}
        return self.obs_arrays[t]

    def obs_at(self, t: int) -> Observation:
        """Observations before step t."""
        if isinstance(self.obs, dict):
            return {key: tensor[t] for key, tensor in self.obs.items()}
        return self.obs[t]

    def _row(self, t: int) -> StepRow:
        mask = None if self.mask_array is None else self.mask_array[t + 1]
        return StepRow(self._obs_array_at(t + 1), self.reward[t], self.terminated[t], self.truncated[t], mask)

    def carry_over(self) -> None:
        """The last observation becomes the first of the next collection."""
        last = self.length
        if isinstance(self.obs_arrays, dict):
            for array in self.obs_arrays.values():
                array[0] = array[last]
        else:
            self.obs_arrays[0] = self.obs_arrays[last]
        if self.mask_array is not None:
            self.mask_array[0] = self.mask_array[last]

    def flat_obs(self, length: int) -> Observation:
        """The first `length` observation rows as one batch [length·N, …]."""
        if isinstance(self.obs, dict):
            return {key: tensor[:length].flatten(0, 1) for key, tensor in self.obs.items()}
        return self.obs[:length].flatten(0, 1)

    def values(self) -> np.ndarray:
        """Values [T, N] of the observations that were acted on."""
        return self.value[: self.length].numpy()

    def host_obs(self) -> Any:
        """All observations [T + 1, N, …] as arrays."""
        obs, end = self.obs_arrays, self.length + 1
        return {key: array[:end] for key, array in obs.items()} if isinstance(obs, dict) else obs[:end]

    def slot_keys(self) -> list[bytes]:
        """What tells the last transitions of the slots apart: action and both observations."""
        t, arrays = self.length, self.obs_arrays
        parts = arrays.values() if isinstance(arrays, dict) else [arrays]
        action = self.action_arrays[t - 1]
        return [
            b"".join([action[i].tobytes(), *(part[s, i].tobytes() for part in parts for s in (t - 1, t))])
            for i in range(self.n_envs)
        ]

    def batch(self, advantage: np.ndarray, target: np.ndarray) -> Batch:
        """All samples that count, flat, with their targets [T, N]."""
        t = self.length
        batch = Batch(
            obs=self.flat_obs(t),
            action=self.action[:t].flatten(0, 1),
            log_prob=self.log_prob[:t].flatten(),
            value=torch.from_numpy(self.values()).flatten(),
            advantage=torch.from_numpy(advantage).flatten(),
            target=torch.from_numpy(target).flatten(),
            mask=None if self.mask is None else self.mask[:t].flatten(0, 1),
        )
        if self.valid is None:
            return batch
        return batch.select(torch.from_numpy(np.flatnonzero(self.valid[:t])))

    def state(self) -> dict[str, Any]:
        """What the next collection starts from."""
        last = self.length
        obs = self.obs_arrays
        now = {key: array[last].copy() for key, array in obs.items()} if isinstance(obs, dict) else obs[last].copy()
        return {"obs": now, "mask": None if self.mask_array is None else self.mask_array[last].copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` saved, as the last row."""
        self.length = self.n_steps
        if isinstance(self.obs_arrays, dict):
            for key, array in self.obs_arrays.items():
                array[-1] = state["obs"][key]
        else:
            self.obs_arrays[-1] = state["obs"]
        if self.mask_array is not None:
            self.mask_array[-1] = state["mask"]
