"""Normal distributions over Box actions: plain, with a spread that depends on the state, and squashed into the bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor

from gymnast.errors import EnvError

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_GAUSSIAN_ENTROPY = 0.5 + _HALF_LOG_TWO_PI
LOG_STD_RANGE = (-10.0, 2.0)
"""Where a log std that the network gives is held: one bad state must not make the action infinite."""
_ALMOST_ONE = 1.0 - 1e-6  # where the inverse of tanh is still finite in float32
_NODES = 32


class Gaussian:
    """Independent normal per action dimension; parameters are means and log standard deviations side by side.

    The log standard deviations are free parameters of the policy, or outputs of its network (`state_dependent`).
    """

    gain = 0.01

    def __init__(self, shape: tuple[int, ...], *, state_dependent: bool = False) -> None:
        self.size = math.prod(shape)
        self.n_params, self.n_noise = 2 * self.size, self.size
        self.n_outputs = self.n_params if state_dependent else self.size
        self.log_std_outputs = list(range(self.size, self.n_outputs))
        self.action_shape = shape
        self.action_dtype = torch.float32
        self.state_dependent = state_dependent

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Standard normal noise, [*leading, size]."""
        return torch.randn((*leading, self.size), generator=generator, device=generator.device)

    def split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log std [B, size]."""
        mean, log_std = params.split(self.size, -1)
        return mean, log_std.clamp(*LOG_STD_RANGE) if self.state_dependent else log_std

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """Mean plus scaled noise; clipping to the action bounds happens at the env, never here."""
        mean, log_std = self.split(params)
        if noise is None:
            action = mean
        else:
            action = torch.addcmul(mean, log_std.exp(), noise)
        return action.reshape(*action.shape[:-1], *self.action_shape)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Log-probability and entropy, summed over the dimensions of an action."""
        mean, log_std = self.split(params)
        inverse_std = log_std.neg().exp_()
        z = (action.reshape(mean.shape) - mean).mul_(inverse_std)
        log_prob = (z * z).mul_(-0.5).sub_(log_std).sum(-1).sub_(_HALF_LOG_TWO_PI * self.size)
        entropy = log_std.sum(-1).add_(_GAUSSIAN_ENTROPY * self.size)
        return log_prob, entropy, (params, z, inverse_std)

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """d log p/dμ = z/σ, d log p/d log σ = z² − 1, dH/d log σ = 1."""
        params, z, inverse_std = saved
        d_log_prob = d_log_prob.unsqueeze(-1)
        d_mean = (z * inverse_std).mul_(d_log_prob)
        if isinstance(d_entropy, Tensor) and d_entropy.dim():
            d_entropy = d_entropy.unsqueeze(-1)
        d_log_std = (z * z).sub_(1.0).mul_(d_log_prob).add_(d_entropy)
        return torch.cat((d_mean, self._within(params, d_log_std)), -1)

    def _within(self, params: Tensor, d_log_std: Tensor) -> Tensor:
        """No gradient where the log std was held at the end of its range."""
        if not self.state_dependent:
            return d_log_std
        low, high = LOG_STD_RANGE
        log_std = params[..., self.size :]
        return d_log_std.mul_((log_std >= low) & (log_std <= high))


class SquashedGaussian(Gaussian):
    """tanh of a Gaussian, stretched to the bounds: every sample is a valid action, and none piles up at a bound.

    The entropy has no closed form. It is the Gaussian's plus the mean of log |d action / d u|, an integral over one
    normal variable per dimension, which the trapezoidal rule gives together with its derivatives: to 1e-4 for standard
    deviations up to 4. Gauss–Hermite nodes do worse there: the bend of log(1 − tanh² u) at 0 stays as narrow as it is.
    """

    def __init__(self, space: spaces.Box, *, state_dependent: bool = False) -> None:
        super().__init__(tuple(space.shape), state_dependent=state_dependent)
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise EnvError(f"policy.squash_actions needs finite action bounds, this env has {space}.")
        # Float64 bounds first: a half range computed in float32 could step over the bound.
        low, high = np.asarray(space.low, np.float64).ravel(), np.asarray(space.high, np.float64).ravel()
        self._centre = torch.tensor((high + low) / 2, dtype=torch.float32)
        self._half = torch.tensor((high - low) / 2, dtype=torch.float32)
        self._log_stretch = float(np.log((high - low) / 2).sum())
        z = np.linspace(-5.0, 5.0, _NODES)
        weight = np.exp(-0.5 * z * z)
        self._nodes = torch.tensor(z, dtype=torch.float32)
        self._weights = torch.tensor(weight / weight.sum(), dtype=torch.float32)

    def _on(self, params: Tensor) -> None:
        if self._half.device != params.device:
            for name in ("_centre", "_half", "_nodes", "_weights"):
                setattr(self, name, getattr(self, name).to(params.device))

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """The squashed sample, within the bounds."""
        self._on(params)
        mean, log_std = self.split(params)
        if noise is None:
            u = mean
        else:
            u = torch.addcmul(mean, log_std.exp(), noise)
        action = torch.addcmul(self._centre, self._half, u.tanh())
        return action.reshape(*action.shape[:-1], *self.action_shape)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """The Gaussian's, less log |d action / d u| = Σ log(1 − tanh² u) + log half range."""
        self._on(params)
        mean, log_std = self.split(params)
        u = ((action.reshape(mean.shape) - self._centre) / self._half).clamp_(-_ALMOST_ONE, _ALMOST_ONE).atanh_()
        log_prob, entropy, saved = super().evaluate(params, u)
        log_prob = log_prob - _log_slope(u).sum(-1) - self._log_stretch
        spread = log_std.exp().unsqueeze(-1) * self._nodes  # [B, size, K]
        at = mean.unsqueeze(-1) + spread
        entropy = entropy + _log_slope(at).matmul(self._weights).sum(-1) + self._log_stretch
        return log_prob, entropy, (saved, at, spread)

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """The Gaussian's, and for the entropy d log(1 − tanh² u)/du = −2 tanh u at the nodes."""
        gaussian, at, spread = saved
        gradient = super().backward(gaussian, d_log_prob, d_entropy)
        if isinstance(d_entropy, float) and d_entropy == 0.0:
            return gradient
        if isinstance(d_entropy, Tensor) and d_entropy.dim():
            d_entropy = d_entropy.unsqueeze(-1)
        slope = at.tanh().mul_(-2.0)
        d_mean = slope.matmul(self._weights).mul_(d_entropy)
        d_log_std = self._within(gaussian[0], (slope * spread).matmul(self._weights).mul_(d_entropy))
        return gradient.add_(torch.cat((d_mean, d_log_std), -1))


def _log_slope(u: Tensor) -> Tensor:
    """log(1 − tanh² u) without the cancellation."""
    return F.softplus(-2.0 * u).add_(u).sub_(math.log(2.0)).mul_(-2.0)
