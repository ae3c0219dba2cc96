"""The rollout: preallocated [T, N] arrays that envs write into and the update reads from.

What an env gives (observation, reward, flags, mask) has a place of its own, because envs write it themselves. All else is
fields, declared by the policy and the algorithm: nothing here knows what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gymnast.envs.spaces import allocate
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.policies.base import Field, Policy
from gymnast.rollout.batch import Batch, Observation
from gymnast.rollout.hashing import combined, row_hashes


class Rollout:
    """T steps of N envs. Allocated once, in ordinary memory that numpy and torch share."""

    def __init__(self, n_steps: int, envs: VectorEnv, policy: Policy, further: Sequence[Field] = ()) -> None:
        """`further` are the fields of the algorithm."""
        shape = (n_steps, envs.n_envs)
        self.n_steps, self.n_envs = shape
        self.length = n_steps
        """Steps filled by the last collection; below n_steps only when whole episodes are collected."""
        self.reward = np.zeros(shape, np.float32)
        if envs.changes_reward:
            self.own_reward = np.zeros(shape, np.float32)
        else:
            self.own_reward = self.reward
        """The env's own reward; the same array where no wrapper changes it."""
        self.terminated = np.zeros(shape, np.bool_)
        self.truncated = np.zeros(shape, np.bool_)
        self.valid: np.ndarray | None = None
        """Samples that count; None means all of them."""
        self.fields = {field.name: field for field in [*policy.fields(), *further]}
        if policy.state_shape is not None:
            self.fields["starts"] = Field("starts", dtype=torch.bool, after_last=True)
        self.bootstrapped = policy.bootstrapped
        self.next = {name: np.zeros((*shape, *self.fields[name].shape), np.float32) for name in self.bootstrapped}
        """What is expected of the state each step led to: the next row's, or the final one's where an episode was cut off."""
        self.obs_arrays: Any
        self.mask_array: np.ndarray | None
        self.obs: Observation
        self.mask: Tensor | None
        self._kept: dict[str, Tensor] = {}
        self._allocate(envs, policy)
        self._make_views()

    def __getitem__(self, name: str) -> Tensor:
        """A field, [T, N, …] or [T + 1, N, …]."""
        return self._kept[name]

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def _allocate(self, envs: VectorEnv, policy: Policy) -> None:
        self.obs_arrays = policy.encoder.laid_out(allocate(envs.observation_space, (self.n_steps + 1, self.n_envs)))
        self.mask_array = envs.new_mask((self.n_steps + 1, self.n_envs))
        self._kept = {name: self._zeros(field) for name, field in self.fields.items()}
        self.obs = parts(torch.from_numpy, self.obs_arrays)
        if self.mask_array is None:
            self.mask = None
        else:
            self.mask = torch.from_numpy(self.mask_array)

    def _zeros(self, field: Field, device: torch.device | None = None) -> Tensor:
        rows = self.n_steps + field.after_last
        return torch.zeros((rows, self.n_envs, *field.shape), dtype=field.dtype, device=device)

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
            own_reward=self._own_reward_at(0),
        )
        self.obs_steps = [self.obs_at(t) for t in range(n_steps + 1)]
        self.mask_steps = [None if self.mask is None else self.mask[t] for t in range(n_steps + 1)]
        self.steps = {name: list(tensor.unbind(0)) for name, tensor in self._kept.items()}
        self.action_arrays = [step.numpy() for step in self.steps["action"]]

    def _obs_array_at(self, t: int) -> Any:
        return parts(lambda array: array[t], self.obs_arrays)

    def obs_at(self, t: int) -> Observation:
        """Observations before step t."""
        found: Observation = parts(lambda tensor: tensor[t], self.obs)
        return found

    def _row(self, t: int) -> StepRow:
        mask = None
        if self.mask_array is not None:
            mask = self.mask_array[t + 1]
        obs, own = self._obs_array_at(t + 1), self._own_reward_at(t)
        return StepRow(obs, self.reward[t], self.terminated[t], self.truncated[t], mask, own)

    def _own_reward_at(self, t: int) -> np.ndarray | None:
        """Where step t's reward is kept before a wrapper changes it; None if none does."""
        if self.own_reward is self.reward:
            return None
        own: np.ndarray = self.own_reward[t]
        return own

    # ---- from one collection to the next ---------------------------------------------------------------------------

    def start_episodes(self) -> None:
        """Fresh episodes begin in every slot: nothing of before is remembered."""
        if "state" in self:
            self["state"][0].zero_()
            self["starts"][0].fill_(True)

    def carry_over(self) -> None:
        """What the last step led to is what the next collection begins with."""
        for array in self._carried().values():
            array[0] = array[self.length]

    def _carried(self) -> dict[str, np.ndarray]:
        """Arrays whose last row is the first one of the next collection; parts of an observation are `obs.<part>`."""
        arrays = self.obs_arrays
        if isinstance(arrays, dict):
            carried = {f"obs.{name}": array for name, array in arrays.items()}
        else:
            carried = {"obs": arrays}
        if self.mask_array is not None:
            carried["mask"] = self.mask_array
        if "state" in self:
            carried |= {name: self[name].numpy() for name in ("state", "starts")}
        return carried

    def state(self) -> dict[str, Any]:
        """What the next collection starts from."""
        now = {name: array[self.length].copy() for name, array in self._carried().items()}
        return nested(now, isinstance(self.obs_arrays, dict))

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` saved, as the last row."""
        self.length = self.n_steps
        saved = flattened(state)
        for name, array in self._carried().items():
            array[-1] = saved[name]

    # ---- reading ---------------------------------------------------------------------------------------------------

    def flat_obs(self, length: int) -> Observation:
        """The first `length` observation rows as one batch [length·N, …]."""
        found: Observation = parts(lambda tensor: tensor[:length].flatten(0, 1), self.obs)
        return found

    def flat_fields(self, length: int) -> dict[str, Tensor]:
        """All fields of the first `length` steps, flat [length·N, …]."""
        return {name: tensor[:length].flatten(0, 1) for name, tensor in self._kept.items()}

    def host(self, name: str) -> np.ndarray:
        """A bootstrapped field [T, N] of the observations that were acted on, as an array."""
        return self[name][: self.length].numpy()

    def host_obs(self) -> Any:
        """All observations [T + 1, N, …] as arrays."""
        return parts(lambda array: array[: self.length + 1], self.obs_arrays)

    def transition_hashes(self) -> np.ndarray:
        """Hashes [T, N] of all transitions: observation, action, reward, and what it led to.

        Where an episode ended, the next row holds the first observation of another one: how it ended is stored in its place.
        """
        t, obs = self.length, self._obs_hashes()
        terminated, truncated = self.terminated[:t], self.truncated[:t]
        led_to = np.where(terminated | truncated, 1 + terminated, obs[1:])
        return combined(obs[:-1], row_hashes(self._actions()), self.own_reward[:t].view(np.int32), led_to)

    def _obs_hashes(self) -> np.ndarray:
        """Of all observations [T + 1, N]."""
        arrays, end = self.obs_arrays, self.length + 1
        if isinstance(arrays, dict):
            return combined(*(row_hashes(array[:end]) for array in arrays.values()))
        return row_hashes(arrays[:end])

    def _actions(self) -> np.ndarray:
        """All actions [T, N, …] on the host."""
        return self["action"][: self.length].numpy()

    def batch(self, **targets: np.ndarray) -> Batch:
        """All samples that count, flat, with the algorithm's targets [T, N, …] by name."""
        t = self.length
        fields: dict[str, Observation] = {"obs": self.flat_obs(t)}
        for name, field in self.fields.items():
            if field.learned:
                fields[name] = self[name][:t].flatten(0, 1)
        lasting = frozenset(name for name in ("mask", *fields) if self._lasts(name))
        fields |= {name: torch.from_numpy(target).flatten(0, 1) for name, target in targets.items()}
        if self.mask is not None:
            fields["mask"] = self.mask[:t].flatten(0, 1)
        batch = Batch(fields, lasting=lasting, sequence=t if "state" in self else None)
        if self.valid is None:
            return batch
        return batch.whole_episodes(torch.from_numpy(self.valid[:t]))

    def _lasts(self, name: str) -> bool:
        """Whether a field lies where the update reads it."""
        return name not in self.fields or self.fields[name].side == "device"


def parts(function: Callable[[Any], Any], tree: Any) -> Any:
    """The function of an observation, or of each of its parts."""
    if isinstance(tree, dict):
        return {key: function(value) for key, value in tree.items()}
    return function(tree)


def nested(arrays: dict[str, Any], in_parts: bool) -> dict[str, Any]:
    """The saved form of a boundary: parts of the observation under `obs`, and `mask` even if there is none."""
    others = {name: value for name, value in arrays.items() if not name.startswith("obs")}
    if not in_parts:
        obs = arrays["obs"]
    else:
        obs = {name.removeprefix("obs."): value for name, value in arrays.items() if name.startswith("obs.")}
    return {"obs": obs, "mask": None, **others}


def flattened(state: dict[str, Any]) -> dict[str, Any]:
    """What `nested` made, by flat names again."""
    obs = state["obs"]
    if isinstance(obs, dict):
        named = {f"obs.{name}": value for name, value in obs.items()}
    else:
        named = {"obs": obs}
    return named | {name: value for name, value in state.items() if name != "obs"}
