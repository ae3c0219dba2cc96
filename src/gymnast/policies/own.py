"""Networks of the user's own: an encoder module in place of the CNN, or a whole policy, by import path or as an object."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast import own_code
from gymnast.config.schema import PolicyConfig
from gymnast.errors import ConfigError, in_one_line
from gymnast.policies.base import Policy
from gymnast.policies.encoders import Encoder, Observation, flat_size
from gymnast.policies.normalise import RunningNorm


class OwnEncoder(Encoder):
    """An `nn.Module` that goes from a batch of observations to features [B, F]; actor and critic share it.

    It sees what the env gives: images as uint8, parts of a Dict by name. Floats are normalised before it where the config
    says so. It is in evaluation mode all the time, so that the policy that learns is the one that collected.
    """

    def __init__(self, space: spaces.Space, config: PolicyConfig, generator: torch.Generator) -> None:
        nn.Module.__init__(self)
        assert config.encoder is not None
        self.space = space
        self.indexed = False
        self.images = nn.ModuleDict()
        self._pictured: list[str] = []
        self._parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}
        self._floats = {key: part for key, part in self._parts.items() if _is_vector(part)}
        self.flat_size = sum(flat_size(part) for part in self._floats.values())
        normalize = config.normalize_obs and self.flat_size > 0
        self.norm = (
            RunningNorm(self.flat_size, config.obs_clip, None, config.normalize_obs_steps) if normalize else None
        )
        self.reference = config.encoder
        self.module = _made(config, space, generator)
        self.size = self._features()

    @property
    def learns(self) -> bool:
        """Whether gradients go through it."""
        return any(parameter.requires_grad for parameter in self.module.parameters())

    def forward(self, obs: Observation) -> Tensor:
        """Features [B, size]."""
        features: Tensor = self.module(self._normalised(obs))
        return features

    def run(self, obs: Observation) -> tuple[Tensor, Any]:
        """Like `forward`, with what `backprop` needs."""
        with torch.enable_grad():
            features = self(obs)
        return features.detach(), features

    def backprop(self, tape: Any, gradient: Tensor) -> None:
        """Autograd goes on from the features."""
        if tape.requires_grad:
            torch.autograd.backward(tape, gradient)

    def flat(self, obs: Observation) -> Tensor:
        """The floats that are normalised, side by side."""
        return torch.cat([_part(obs, key).flatten(1).float() for key in self._floats], -1)

    def _normalised(self, obs: Observation) -> Observation:
        if self.norm is None:
            return obs
        sizes = [flat_size(part) for part in self._floats.values()]
        pieces = self.norm(self.flat(obs)).split(sizes, -1)
        shaped = zip(self._floats, pieces, strict=True)
        given: dict[str, Tensor] = {key: piece.view(_part(obs, key).shape) for key, piece in shaped}
        if isinstance(obs, dict):
            return {**obs, **given}
        return given[""]

    def _features(self) -> int:
        """What the module makes of two observations of zeros."""
        try:
            with torch.no_grad():
                features = self(self._zeros(2))
        except Exception as error:  # the module's own code
            raise ConfigError(
                f"policy.encoder ({self.reference}) cannot read observations of {self.space}: {in_one_line(error)}."
            ) from error
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        if not isinstance(features, Tensor) or features.dim() != 2 or len(features) != 2:
            raise ConfigError(
                f"policy.encoder ({self.reference}) must give features [B, F] for a batch of B observations; two of them gave "
                f"{shape}."
            )
        return int(features.shape[1])

    def _zeros(self, n: int) -> Observation:
        tensors = {
            key: torch.from_numpy(np.zeros((n, *(part.shape or ())), part.dtype)) for key, part in self._parts.items()
        }
        if isinstance(self.space, spaces.Dict):
            return tensors
        return tensors[""]


def _is_vector(part: spaces.Space) -> bool:
    return isinstance(part, spaces.Box) and part.dtype.kind == "f"


def _part(obs: Observation, key: str) -> Tensor:
    return obs[key] if isinstance(obs, dict) else obs


def _made(config: PolicyConfig, space: spaces.Space, generator: torch.Generator) -> nn.Module:
    """The module with its own initialisation, drawn from the run's seed; torch's own generator stays as it is."""
    reference = str(config.encoder)
    found = own_code.find(reference, "policy.encoder")
    if not callable(found):
        raise ConfigError(f"policy.encoder ({reference}) is a {type(found).__name__}: an nn.Module class is needed.")
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            made = found(space, **config.encoder_kwargs)
        except Exception as error:  # the module's own code
            raise ConfigError(
                f"policy.encoder ({reference}) cannot be made with (observation_space, **{config.encoder_kwargs}): "
                f"{in_one_line(error)}."
            ) from error
    if not isinstance(made, nn.Module):
        raise ConfigError(f"policy.encoder ({reference}) gave a {type(made).__name__}: an nn.Module is needed.")
    return made.float()


def own_policy(reference: str) -> Any:
    """A policy class by import path or as an object."""
    found = own_code.find(reference, "policy.id")
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ConfigError(
            f"policy.id ({reference}) is no policy: a class derived from gymnast.policies.base.Policy is needed. An nn.Module "
            "that only reads observations goes into policy.encoder."
        )
    return found
