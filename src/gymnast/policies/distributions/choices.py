"""Choices: one of n, several at once, and switches."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class Categorical:
    """One choice out of n; parameters are logits."""

    gain = 0.01

    def __init__(self, n_actions: int) -> None:
        self.n_params = self.n_outputs = self.n_noise = n_actions
        self.log_std_outputs: list[int] = []
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
            gradient: Tensor = (p * d_log_prob).neg_()
        else:
            gradient = (log_p + entropy).mul_(d_entropy).add_(d_log_prob).mul_(p).neg_()
        gradient.scatter_add_(0, index, d_log_prob.unsqueeze(0))
        return gradient.t()


class MultiCategorical:
    """Several independent choices; parameters are their logits side by side."""

    gain = 0.01

    def __init__(self, n_actions: list[int]) -> None:
        self.n_params = self.n_outputs = self.n_noise = sum(n_actions)
        self.log_std_outputs: list[int] = []
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


class Bernoulli:
    """Independent switches; parameters are the logits of `on`."""

    gain = 0.01

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.size = math.prod(shape)
        self.n_params = self.n_outputs = self.n_noise = self.size
        self.log_std_outputs: list[int] = []
        self.action_shape = shape
        self.action_dtype = torch.int64

    def noise(self, leading: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Logistic noise: logit + noise is positive with the switch's probability."""
        return torch.rand((*leading, self.size), generator=generator, device=generator.device).logit_()

    def sample(self, params: Tensor, noise: Tensor | None) -> Tensor:
        """On or off, the likelier one without noise."""
        on = (params if noise is None else params + noise) > 0
        return on.to(self.action_dtype).reshape(*params.shape[:-1], *self.action_shape)

    def evaluate(self, params: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Sums over switches: log p = a z − softplus(z), H = softplus(z) − z σ(z)."""
        on = action.reshape(params.shape).to(params.dtype)
        p, softplus = params.sigmoid(), F.softplus(params)
        log_prob = (on * params).sub_(softplus).sum(-1)
        entropy = softplus.sub_(params * p).sum(-1)
        return log_prob, entropy, (params, p, on)

    def backward(self, saved: Any, d_log_prob: Tensor, d_entropy: Tensor | float) -> Tensor:
        """d log p/dz = a − σ and dH/dz = −z σ (1 − σ)."""
        z, p, on = saved
        if isinstance(d_entropy, Tensor) and d_entropy.dim():
            d_entropy = d_entropy.unsqueeze(-1)
        d_from_entropy = (p * p).sub_(p).mul_(z).mul_(d_entropy)
        d_logits: Tensor = (on - p).mul_(d_log_prob.unsqueeze(-1)).add_(d_from_entropy)
        return d_logits
