"""Activations as pairs: in-place forward for the hand-written path, and the derivative that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_aten = torch.ops.aten


def tanh_(x: Tensor) -> Tensor:
    """In-place tanh. On CPU 2·sigmoid(2x) − 1 is five times faster than torch's tanh and within 2e-7 of it."""
    if x.is_cuda:
        return x.tanh_()
    return x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


@dataclass(frozen=True)
class Activation:
    """One activation in three forms."""

    plain: Callable[[Tensor], Tensor]
    """For autograd."""
    forward: Callable[[Tensor], Tensor]
    """For the hand-written path; may work in place."""
    backward: Callable[[Tensor, Tensor], Tensor]
    """(gradient of the output, kept) → gradient of the input; `kept` is the output, or the input if keeps_input."""
    keeps_input: bool = False


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(torch.tanh, tanh_, _aten.tanh_backward),
    "relu": Activation(torch.relu, torch.relu_, lambda d, y: _aten.threshold_backward(d, y, 0.0)),
    "elu": Activation(F.elu, F.elu_, lambda d, y: _aten.elu_backward(d, 1.0, 1.0, 1.0, True, y)),
    "leaky_relu": Activation(
        F.leaky_relu, F.leaky_relu_, lambda d, y: _aten.leaky_relu_backward(d, y, 0.01, True)
    ),
    "silu": Activation(F.silu, F.silu, lambda d, x: _aten.silu_backward(d, x), keeps_input=True),
    "gelu": Activation(F.gelu, F.gelu, lambda d, x: _aten.gelu_backward(d, x), keeps_input=True),
}
