"""Random network distillation (Burda et al. 2018, "Exploration by Random Network Distillation", arXiv 1810.12894).

A predictor learns what a fixed random network says of observations. Where it errs, the agent has seldom been: the error is a
second, intrinsic reward. It has a value head and a discount of its own, and its returns go on over the ends of episodes, because
dying is no reason to stop being curious.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.algorithms.base import RNDConfig
from gymnast.errors import ConfigError
from gymnast.policies.base import Head
from gymnast.policies.convolution import channels_first, image_shape
from gymnast.policies.encoders import Observation, flat_part, flat_size
from gymnast.policies.normalise import RunningNorm
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.returns import Floats, RewardScaler, gae

INTRINSIC = Head("intrinsic_value", bootstrapped=True)
_CLIP = 5.0
"""Of normalised observations, as in the paper."""
_NATURE_SIDE = 36
"""Images from this size on are read by Nature's convolutions; smaller ones by small ones."""
_AT_ONCE = 4096
"""Observations whose error is computed at once."""


class RND(nn.Module):
    """Predictor and target, and what observations and errors are normalised by."""

    def __init__(self, config: RNDConfig, space: spaces.Space, n_envs: int, seed: int) -> None:
        super().__init__()
        self.config = config
        self._parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}
        self._images = {key: part for key, part in self._parts.items() if _is_image(part)}
        if not any(isinstance(part, spaces.Box) for part in self._parts.values()):
            raise ConfigError(
                f"algo.rnd measures how new observations of numbers or images are; this env has {space}. Remove algo.rnd, "
                "or turn the observation into numbers (env.wrappers: one_hot or array)."
            )
        # Images first, as in the policy's features.
        self._order = sorted(self._parts, key=lambda key: key not in self._images)
        self._sizes = [_size(self._parts[key]) for key in self._order]
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator before they are initialised
            self.target = _Network(self._shapes(), config, layers=1, generator=generator)
            self.predictor = _Network(
                self._shapes(), config, layers=1 + len(config.further_layers), generator=generator
            )
        _freeze(self.target)
        self.norm = RunningNorm(sum(self._sizes), _CLIP)
        self.scaler = RewardScaler(n_envs, math.inf)
        self.reward_mean = 0.0
        """Of the last rollout, normalised."""

    def _shapes(self) -> list[tuple[int, ...]]:
        """Of each image, and how many numbers there are besides."""
        images: list[tuple[int, ...]] = [image_shape(part.shape or ()) for part in self._images.values()]
        return [*images, (sum(_size(part) for key, part in self._parts.items() if key not in self._images),)]

    # ---- what it reads ---------------------------------------------------------------------------------------------

    def flat(self, obs: Observation) -> Tensor:
        """Observations as rows of numbers, images pixel by pixel."""
        columns = []
        for key in self._order:
            part = self._parts[key]
            tensor = obs[key] if isinstance(obs, dict) else obs
            if key in self._images:
                columns.append(channels_first(tensor, tensor.shape[1:]).flatten(1).float())
            else:
                columns.append(flat_part(part, tensor))
        return torch.cat(columns, -1)

    def errors(self, rows: Tensor) -> Tensor:
        """Mean squared error of the prediction [B], differentiable by the predictor."""
        x = self.norm(rows)
        with torch.no_grad():
            wanted = self.target(x)
        found: Tensor = (self.predictor(x) - wanted).square().mean(-1)
        return found

    @torch.no_grad()
    def novelty(self, obs: Observation) -> Tensor:
        """How new observations [B] are, in the unit of the error; nothing changes by it."""
        return torch.cat([self.errors(rows) for rows in self.flat(obs).split(_AT_ONCE)])

    # ---- what it pays ----------------------------------------------------------------------------------------------

    def targets(self, rollout: Rollout) -> tuple[Floats, Floats]:
        """Intrinsic advantages and value targets [T, N]. No step ends anything."""
        t, n = rollout.length, rollout.n_envs
        seen = rollout.flat_obs(t + 1)
        reward = self.novelty(seen).view(t + 1, n)[1:].cpu().numpy()  # of what each step led to
        never = np.zeros((t, n), np.bool_)
        scaled = self.scaler(reward, never, self.config.intrinsic_gamma).astype(np.float32)
        self.reward_mean = float(scaled.mean())
        value = rollout[INTRINSIC.name][: t + 1].cpu().numpy()
        advantage, target = gae(
            scaled, value[:-1], value[1:], never, never, self.config.intrinsic_gamma, self.config.intrinsic_lambda
        )
        self.norm.update(self.flat(seen)[n:])
        return advantage, target

    # ---- what it learns --------------------------------------------------------------------------------------------

    def learn(self, obs: Observation) -> Tensor:
        """Add the predictor's gradients of the mean error; returns the errors [B]."""
        with torch.enable_grad():
            errors = self.errors(self.flat(obs))
            errors.mean().backward()
        return errors.detach()

    def state(self) -> dict[str, Any]:
        """What is no weight: the running std of intrinsic returns."""
        return {"scaler": self.scaler.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned, after the weights."""
        self.scaler.load_state(state["scaler"])
        self.norm.refresh()


class _Network(nn.Module):
    """One column of convolutions per image, then linear layers to the features; ReLUs between."""

    def __init__(
        self, shapes: list[tuple[int, ...]], config: RNDConfig, *, layers: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        *images, (self._flat,) = shapes
        self._shapes = images
        self.columns = nn.ModuleList(_column(*shape) for shape in images)
        n_in = self._flat
        for column, shape in zip(self.columns, images):
            n_in += column(torch.zeros(1, *shape)).shape[1]
        widths = [n_in, config.first_layer, *config.further_layers[: layers - 1], config.features]
        body: list[nn.Module] = []
        for a, b in itertools.pairwise(widths):
            body += [nn.Linear(a, b), nn.ReLU()]
        self.body = nn.Sequential(*body[:-1])
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                nn.init.orthogonal_(module.weight, math.sqrt(2.0), generator=generator)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Features [B, F] of rows of numbers."""
        *images, flat = x.split([*(math.prod(shape) for shape in self._shapes), self._flat], -1)
        read = [column(image.view(-1, *shape)) for column, image, shape in zip(self.columns, images, self._shapes)]
        found: Tensor = self.body(torch.cat([*read, flat], -1))
        return found


def _column(channels: int, height: int, width: int) -> nn.Module:
    """Convolutions for images of this size."""
    if min(height, width) >= _NATURE_SIDE:
        layers = [(32, 8, 4, 0), (64, 4, 2, 0), (64, 3, 1, 0)]
    else:
        layers = [(16, 3, 1, 1), (32, 3, 2, 1), (32, 3, 1, 1)]
    body: list[nn.Module] = []
    n_in = channels
    for n_out, kernel, stride, padding in layers:
        body += [nn.Conv2d(n_in, n_out, kernel, stride, padding), nn.LeakyReLU()]
        n_in = n_out
    return nn.Sequential(*body, nn.Flatten())


def _freeze(network: nn.Module) -> None:
    """Parameters become buffers: saved, and never learned."""
    for module in network.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.detach().clone())


def _is_image(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (3, 4)


def _size(space: spaces.Space) -> int:
    return math.prod(space.shape) if _is_image(space) and space.shape is not None else flat_size(space)
