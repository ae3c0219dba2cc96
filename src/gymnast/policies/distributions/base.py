"""What a policy needs of an action distribution."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


class Distribution(Protocol):
    """Functions of a parameter tensor [B, n_params], with the derivatives that training needs.

    Parameters are the network's outputs followed by free ones (log standard deviations), if there are any.
    """

    n_params: int
    n_outputs: int
    """Outputs of the network; fewer than n_params when the rest are free parameters."""
    n_noise: int
    """Last axis of `noise`."""
    log_std_outputs: list[int]
    """Network outputs that are log standard deviations: they start at policy.log_std_init."""
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
