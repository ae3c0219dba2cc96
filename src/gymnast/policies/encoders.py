"""From stored observations to what the first layer reads."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.errors import EnvError
from gymnast.policies.normalise import RunningNorm

Observation = Tensor | dict[str, Tensor]


class Encoder(nn.Module):
    """Flattens and joins the parts of an observation; Discrete ones become indices (alone) or one-hot (inside a Dict)."""

    _column: Tensor

    def __init__(self, space: spaces.Space, *, normalize: bool, clip: float) -> None:
        super().__init__()
        self.space = space
        self.indexed = isinstance(space, (spaces.Discrete, spaces.MultiDiscrete))
        if isinstance(space, spaces.MultiDiscrete):
            sizes = np.ravel(space.nvec)
            self.register_buffer(
                "_column", torch.tensor(np.concatenate(([0], np.cumsum(sizes)[:-1]))), persistent=False
            )
        self.size = flat_size(space)
        # Images and flags arrive in a fixed range already; statistics would only distort them.
        self.norm = RunningNorm(self.size, clip, self._skipped()) if normalize and not self.indexed else None

    def _skipped(self) -> Tensor | None:
        parts = self.space.spaces.values() if isinstance(self.space, spaces.Dict) else [self.space]
        skip = [
            not isinstance(part, spaces.Box) or part.dtype in (np.uint8, np.bool_)
            for part in parts
            for _ in range(flat_size(part))
        ]
        return torch.tensor(skip) if any(skip) else None

    def forward(self, obs: Observation) -> Tensor:
        """[B, size] floats, or [B] / [B, K] column indices for Discrete / MultiDiscrete observations."""
        if self.indexed:
            assert isinstance(obs, Tensor)
            return obs + self._column if isinstance(self.space, spaces.MultiDiscrete) else obs
        x = self.flat(obs)
        return x if self.norm is None else self.norm(x)

    def flat(self, obs: Observation) -> Tensor:
        """Joined float vector before normalisation."""
        if isinstance(obs, dict):
            assert isinstance(self.space, spaces.Dict)
            return torch.cat([_flat_part(self.space[key], obs[key]) for key in self.space.spaces], -1)
        return _flat_part(self.space, obs)


def flat_size(space: spaces.Space) -> int:
    """Inputs of the first layer for this space."""
    if isinstance(space, spaces.Dict):
        return sum(flat_size(part) for part in space.spaces.values())
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(np.sum(space.nvec))
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return int(np.prod(space.shape))
    raise EnvError(
        f"Observation space {space} is not supported: expected Box, Discrete, MultiDiscrete, MultiBinary or Dict."
    )


def _flat_part(space: spaces.Space, obs: Tensor) -> Tensor:
    if isinstance(space, spaces.Discrete):
        return F.one_hot(obs, int(space.n)).float()
    if isinstance(space, spaces.MultiDiscrete):
        parts = [F.one_hot(column, int(n)) for column, n in zip(obs.flatten(1).unbind(1), np.ravel(space.nvec))]
        return torch.cat(parts, -1).float()
    flat = obs if obs.dim() == 2 else obs.flatten(1)
    if flat.dtype == torch.uint8:
        return flat.float().div_(255.0)  # images: scaled here, and only here
    return flat if flat.dtype == torch.float32 else flat.float()
