"""Actions made of parts (Dict and Tuple spaces): independent distributions whose actions lie side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gymnast.policies.distributions.base import Distribution


class Composite:
    """Independent parts. An action is one row of floats with the parts' actions side by side; choices are whole numbers."""

    gain = 0.01

    def __init__(self, parts: Sequence[Distribution]) -> None:
        self.parts = list(parts)
        self._outputs = [part.n_outputs for part in parts]
        self._free = [part.n_params - part.n_outputs for part in parts]
        self._noises = [part.n_noise for part in parts]
        self._sizes = [math.prod(part.action_shape) for part in parts]
        self.n_outputs, self.n_noise = sum(self._outputs), sum(self._noises)
        self.n_params = self.n_outputs + sum(self._free)
        starts = itertools.accumulate(self._outputs, initial=0)
        self.log_std_outputs = [start + i for start, part in zip(starts, parts) for i in part.log_std_outputs]
        self.action_shape: tuple[int, ...] = (sum(self._sizes),)
        self.action_dtype = torch.float32

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """The parts' noise side by side."""
        return torch.cat([part.noise(leading, generator) for part in self.parts], -1)

    def split(self, params: Tensor) -> list[Tensor]:
        """Parameters of each part: its outputs, then its free ones."""
        outputs = params[..., : self.n_outputs].split(self._outputs, -1)
        free = params[..., self.n_outputs :].split(self._free, -1)
        return [torch.cat(pair, -1) if pair[1].shape[-1] else pair[0] for pair in zip(outputs, free)]

    def actions(self, action: Tensor) -> list[Tensor]:
        """Each part's actions, in its own shape and type."""
        return [
            piece.reshape(*piece.shape[:-1], *part.action_shape).to(part.action_dtype)
            for piece, part in zip(action.split(self._sizes, -1), self.parts)
        ]

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """The parts' actions side by side."""
        if noise is None:
            noises = [None] * len(self.parts)
        else:
            noises = noise.split(self._noises, -1)
        pieces = [part.sample(p, n) for part, p, n in zip(self.parts, self.split(params), noises)]
        leading = params.shape[:-1]
        return torch.cat([piece.reshape(*leading, -1).to(self.action_dtype) for piece in pieces], -1)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Log-probabilities and entropies add up over the parts."""
        results = [
            part.evaluate(p, a) for part, p, a in zip(self.parts, self.split(params), self.actions(action), strict=True)
        ]
        log_prob = torch.stack([result[0] for result in results]).sum(0)
        entropy = torch.stack([result[1] for result in results]).sum(0)
        return log_prob, entropy, [result[2] for result in results]

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """Each part gets the same incoming gradients; outputs first, then the free parameters."""
        gradients = [part.backward(s, d_log_prob, d_entropy) for part, s in zip(self.parts, saved)]
        outputs = [gradient[..., :n] for gradient, n in zip(gradients, self._outputs)]
        free = [gradient[..., n:] for gradient, n in zip(gradients, self._outputs)]
        return torch.cat((*outputs, *free), -1)
