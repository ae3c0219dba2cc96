"""From stored observations to what the first layer of actor and critic reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import PolicyConfig
from gymnast.errors import ConfigError, EnvError
from gymnast.policies.convolution import ConvNet, is_image
from gymnast.policies.normalise import RunningNorm

Observation = Tensor | dict[str, Tensor]
ALONE = "image"
"""Name of the CNN of an observation that is one image."""


class Encoder(nn.Module):
    """Joins the parts of an observation: images through a CNN each, the rest laid out flat.

    Discrete observations become indices (alone) or one-hot (inside a Dict).
    """

    _column: Tensor

    def __init__(self, space: spaces.Space, config: PolicyConfig) -> None:
        super().__init__()
        self.space = space
        self.indexed = isinstance(space, (spaces.Discrete, spaces.MultiDiscrete))
        if isinstance(space, spaces.MultiDiscrete):
            sizes = np.ravel(space.nvec)
            self.register_buffer(
                "_column", torch.tensor(np.concatenate(([0], np.cumsum(sizes)[:-1]))), persistent=False
            )
        if isinstance(space, spaces.Dict):
            parts = space.spaces
        else:
            parts = {"": space}
        self.pictured = [key for key, part in parts.items() if _reads_image(part, config)]
        """Names of the parts that are images; an observation that is one itself has the empty name."""
        self.images = nn.ModuleDict()
        for key in self.pictured:
            self.images[_free_name(key, self.images)] = ConvNet(config, parts[key], key)  # type: ignore[arg-type]
        if not self.images and config.cnn not in ("auto", "none"):
            what = config.cnn if isinstance(config.cnn, str) else "a list of layers"
            raise ConfigError(
                f"policy.cnn is {what}, but the observation {space} has no image: set it to auto or none."
            )
        self._flat = {key: part for key, part in parts.items() if key not in self.pictured}
        self.flat_size = sum(flat_size(part) for part in self._flat.values())
        self.size = self.flat_size + sum(net.size for net in self.nets)
        # Images and flags arrive in a fixed range already; statistics would only distort them.
        normalize = config.normalize_obs and not self.indexed and self.flat_size > 0
        most = config.normalize_obs_steps
        self.norm: RunningNorm | None = None
        if normalize:
            self.norm = RunningNorm(self.flat_size, config.obs_clip, self._skipped(), most)

    @property
    def nets(self) -> list[ConvNet]:
        """The CNNs, in the order of the parts they read."""
        return list(self.images.values())  # type: ignore[arg-type]

    @property
    def learns(self) -> bool:
        """Whether there is anything to learn before actor and critic part."""
        return len(self.images) > 0

    def _skipped(self) -> Tensor | None:
        skip = [
            not isinstance(part, spaces.Box) or part.dtype in (np.uint8, np.bool_)
            for part in self._flat.values()
            for _ in range(flat_size(part))
        ]
        if any(skip):
            return torch.tensor(skip)
        return None

    def forward(self, obs: Observation) -> Tensor:
        """[B, size] floats, or [B] / [B, K] column indices for Discrete / MultiDiscrete observations."""
        if not self.images:
            return self._rest(obs)
        return self._joined(obs, [net(image) for net, image in zip(self.nets, self.pictures(obs))])

    def run(self, obs: Observation) -> tuple[Tensor, Any]:
        """Like `forward`, with the tape that `backprop` needs."""
        if not self.images:
            return self._rest(obs), None
        ran = [net.run(image) for net, image in zip(self.nets, self.pictures(obs))]
        return self._joined(obs, [features for features, _ in ran]), [tape for _, tape in ran]

    def backprop(self, tape: Any, gradient: Tensor) -> None:
        """Add the gradients of the CNNs, which come first in the features."""
        start = 0
        for net, kept in zip(self.nets, tape):
            net.backprop(kept, gradient[:, start : start + net.size])
            start += net.size

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the weights stay as they are and nothing is learned, what the CNNs compute from them is computed once."""
        with ExitStack() as stack:
            for net in self.nets:
                stack.enter_context(net.held())
            yield

    def packed(self, obs: Observation) -> Observation:
        """The same observations, for reading them several times; only images are copied."""
        if not self.images:
            return obs
        if isinstance(obs, Tensor):
            return self.nets[0].packed(obs)
        return {**obs, **{key: net.packed(obs[key]) for key, net in zip(self.pictured, self.nets, strict=True)}}

    def laid_out(self, arrays: Any) -> Any:
        """Arrays like these zeros [T, N, …], with images in the memory that `packed` gives without a copy."""
        if not self.images:
            return arrays
        if not isinstance(arrays, dict):
            return self.nets[0].laid_out(arrays)
        return {
            **arrays,
            **{key: net.laid_out(arrays[key]) for key, net in zip(self.pictured, self.nets, strict=True)},
        }

    def pictures(self, obs: Observation) -> list[Tensor]:
        """What each CNN reads."""
        if isinstance(obs, Tensor):
            return [obs]
        return [obs[key] for key in self.pictured]

    def _joined(self, obs: Observation, features: list[Tensor]) -> Tensor:
        if self.flat_size:
            features = [*features, self._rest(obs)]
        if len(features) == 1:
            return features[0]
        return torch.cat(features, -1)

    def _rest(self, obs: Observation) -> Tensor:
        if self.indexed:
            assert isinstance(obs, Tensor)
            if isinstance(self.space, spaces.MultiDiscrete):
                return obs + self._column
            return obs
        x = self.flat(obs)
        if self.norm is not None:
            x = self.norm(x)
        return x

    def flat(self, obs: Observation) -> Tensor:
        """What no CNN reads as one float vector, before normalisation."""
        if isinstance(obs, dict):
            return torch.cat([flat_part(part, obs[key]) for key, part in self._flat.items()], -1)
        return flat_part(self.space, obs)


def reads_images(space: spaces.Space, config: PolicyConfig) -> bool:
    """Whether a policy for this space has a CNN of ours; a user's own encoder may compute anything."""
    if config.encoder is not None:
        return False
    parts = [space]
    if isinstance(space, spaces.Dict):
        parts = list(space.spaces.values())
    return any(_reads_image(part, config) for part in parts)


def _free_name(key: str, taken: nn.Module) -> str:
    """The key as torch allows it: without dots, and no attribute that a module has already."""
    name = key.replace(".", "_") or ALONE
    while hasattr(taken, name):
        name += "_"
    return name


def _reads_image(space: spaces.Space, config: PolicyConfig) -> bool:
    if config.cnn == "none":
        return False
    if config.cnn == "auto":
        return is_image(space)
    return isinstance(space, spaces.Box) and len(space.shape) in (3, 4)


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


def flat_part(space: spaces.Space, obs: Tensor) -> Tensor:
    """Observations of a part as rows of floats: choices one-hot, bytes divided by 255."""
    if isinstance(space, spaces.Discrete):
        return F.one_hot(obs, int(space.n)).float()
    if isinstance(space, spaces.MultiDiscrete):
        parts = [F.one_hot(column, int(n)) for column, n in zip(obs.flatten(1).unbind(1), np.ravel(space.nvec))]
        return torch.cat(parts, -1).float()
    if obs.dim() == 2:
        flat = obs
    else:
        flat = obs.flatten(1)
    if flat.dtype == torch.uint8:
        return flat.float().div_(255.0)  # images: scaled here, and only here
    if flat.dtype == torch.float32:
        return flat
    return flat.float()
