"""All parameters and all gradients of a module as views of two flat tensors.

Zeroing, clipping and stepping are then one operation each instead of one per parameter.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gymnast.policies.dense import DenseChain


class FlatParameters:
    """Rebinds a module's parameters to views of `values`, and their `.grad` to views of `grads`."""

    def __init__(self, module: nn.Module) -> None:
        parameters = list(module.parameters())
        total = sum(parameter.numel() for parameter in parameters)
        first = parameters[0]
        self.values = torch.empty(total, dtype=first.dtype, device=first.device)
        self.grads = torch.zeros_like(self.values)
        offset = 0
        with torch.no_grad():
            for parameter in parameters:
                view = self.values[offset : offset + parameter.numel()].view(parameter.shape)
                view.copy_(parameter)
                parameter.data = view
                parameter.grad = self.grads[offset : offset + parameter.numel()].view(parameter.shape)
                offset += parameter.numel()
        for part in module.modules():
            if isinstance(part, DenseChain):
                part.bind()

    def norm(self) -> Tensor:
        """Global gradient norm, on the device."""
        return torch.linalg.vector_norm(self.grads)
