"""Action distributions as functions of a parameter tensor [B, P], with the derivatives that training needs.

Noise for a whole rollout is drawn at once and handed in step by step, so acting costs one addition and one argmax.
`evaluate` returns log-probabilities and entropies with what `backward` needs to turn their gradients into the parameters'.
Masks are already in the parameters: an impossible action has a logit of `IMPOSSIBLE`.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.errors import EnvError

IMPOSSIBLE = -1e9  # finite, so that p·log p is 0 and not NaN; exp of it is exactly 0
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_GAUSSIAN_ENTROPY = 0.5 + _HALF_LOG_TWO_PI


class Distribution(Protocol):
    """What a policy needs of its action distribution."""

    n_params: int
    n_outputs: int
    """Outputs of the network; fewer than n_params when the rest are free parameters (log std)."""
    action_shape: tuple[int, ...]
    action_dtype: torch.dtype
    gain: float

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Noise [*leading, …] that `sample` turns into actions."""

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """Actions [B, …]; the most likely ones without noise."""

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Log-probability [B], entropy [B], and what `backward` needs."""

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """Gradient [B, P] of the parameters."""


class Categorical:
    """One choice out of n; parameters are logits."""

    gain = 0.01

    def __init__(self, n_actions: int) -> None:
        self.n_params = self.n_outputs = n_actions
        self.action_shape: tuple[int, ...] = ()
        self.action_dtype = torch.int64

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Gumbel noise: the argmax of logits + noise is a sample."""
        exponential = torch.empty((*leading, self.n_params), device=generator.device)
        return exponential.exponential_(generator=generator).log_().neg_()

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """Gumbel-max sample, or the mode."""
        return (params if noise is None else params + noise).argmax(-1)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Works on [P, B]: a softmax over the leading axis vectorises over the batch, ten times faster for few actions."""
        log_p = torch.log_softmax(params.t().contiguous(), 0)
        p = log_p.exp()
        index = action.unsqueeze(0)
        entropy = (p * log_p).sum(0).neg_()
        return log_p.gather(0, index).squeeze(0), entropy, (log_p, p, index, entropy)

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """d log p(a)/dz = 1[a] − p and dH/dz = −p (log p + H)."""
        log_p, p, index, entropy = saved
        if isinstance(d_entropy, float) and d_entropy == 0.0:
            gradient = (p * d_log_prob).neg_()
        else:
            gradient = (log_p + entropy).mul_(d_entropy).add_(d_log_prob).mul_(p).neg_()
        gradient.scatter_add_(0, index, d_log_prob.unsqueeze(0))
        return gradient.t()


class MultiCategorical:
    """Several independent choices; parameters are their logits side by side."""

    gain = 0.01

    def __init__(self, n_actions: list[int]) -> None:
        self.n_params = self.n_outputs = sum(n_actions)
        self.action_shape: tuple[int, ...] = (len(n_actions),)
        self.action_dtype = torch.int64
        self._sizes = n_actions
        self._parts = [Categorical(n) for n in n_actions]

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Gumbel noise for all choices."""
        return Categorical(self.n_params).noise(leading, generator)

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """One argmax per choice."""
        scores = params if noise is None else params + noise
        return torch.stack([part.argmax(-1) for part in scores.split(self._sizes, -1)], -1)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Log-probabilities and entropies add up over the choices."""
        pieces = params.split(self._sizes, -1)
        results = [part.evaluate(z, a) for part, z, a in zip(self._parts, pieces, action.unbind(-1))]
        log_prob = torch.stack([result[0] for result in results]).sum(0)
        entropy = torch.stack([result[1] for result in results]).sum(0)
        return log_prob, entropy, [result[2] for result in results]

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """Each choice gets the same incoming gradients."""
        return torch.cat([part.backward(s, d_log_prob, d_entropy) for part, s in zip(self._parts, saved)], -1)


class Gaussian:
    """Independent normal per action dimension; parameters are means and log standard deviations side by side."""

    gain = 0.01

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.size = int(np.prod(shape))
        self.n_params, self.n_outputs = 2 * self.size, self.size
        self.action_shape = shape
        self.action_dtype = torch.float32

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Standard normal noise."""
        return torch.randn((*leading, self.size), generator=generator, device=generator.device)

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """Mean plus scaled noise; clipping to the action bounds happens at the env, never here."""
        mean, log_std = params.split(self.size, -1)
        action = mean if noise is None else torch.addcmul(mean, log_std.exp(), noise)
        return action.reshape(*action.shape[:-1], *self.action_shape)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Sums over dimensions."""
        mean, log_std = params.split(self.size, -1)
        inverse_std = log_std.neg().exp_()
        z = (action.reshape(mean.shape) - mean).mul_(inverse_std)
        log_prob = (z * z).mul_(-0.5).sub_(log_std).sum(-1).sub_(_HALF_LOG_TWO_PI * self.size)
        entropy = log_std.sum(-1).add_(_GAUSSIAN_ENTROPY * self.size)
        return log_prob, entropy, (z, inverse_std)

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """d log p/dμ = z/σ, d log p/d log σ = z² − 1, dH/d log σ = 1."""
        z, inverse_std = saved
        d_log_prob = d_log_prob.unsqueeze(-1)
        d_mean = (z * inverse_std).mul_(d_log_prob)
        d_entropy = d_entropy.unsqueeze(-1) if isinstance(d_entropy, Tensor) and d_entropy.dim() else d_entropy
        d_log_std = (z * z).sub_(1.0).mul_(d_log_prob).add_(d_entropy)
        return torch.cat((d_mean, d_log_std), -1)


def distribution_for(space: spaces.Space) -> Distribution:
    """The distribution that fits an action space."""
    if isinstance(space, spaces.Discrete):
        return Categorical(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiCategorical([int(n) for n in np.ravel(space.nvec)])
    if isinstance(space, spaces.Box):
        return Gaussian(tuple(space.shape))
    raise EnvError(f"Action space {space} is not supported yet: expected Discrete, MultiDiscrete or Box.")
