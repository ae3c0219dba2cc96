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
        self._shapes = [parameter.shape for parameter in parameters]
        with torch.no_grad():
            for parameter, value, grad in zip(parameters, self.split(self.values), self.split(self.grads), strict=True):
                value.copy_(parameter)
                parameter.data = value
                parameter.grad = grad
        for part in module.modules():
            if isinstance(part, DenseChain):
                part.bind()

    def split(self, flat: Tensor) -> list[Tensor]:
        """Views of a flat tensor in the shapes of the parameters, in their order."""
        pieces = flat.split([shape.numel() for shape in self._shapes])
        return [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def by_part(self, module: nn.Module) -> dict[str, list[int]]:
        """Which parameters, by number, belong to which part of the module that these are of: `policy`, `value`, `trunk` …"""
        parts: dict[str, list[int]] = {}
        for number, (name, _) in enumerate(module.named_parameters()):
            parts.setdefault(_part_of(name), []).append(number)
        return parts

    def norm(self) -> Tensor:
        """Global gradient norm, on the device."""
        norm: Tensor = torch.linalg.vector_norm(self.grads)
        return norm


_PARTS = {"actor": "policy", "log_std": "policy", "critic": "value"}
"""What people call the modules of the shipped policy."""


def _part_of(parameter: str) -> str:
    """`value` of `critic.layers.0.weight`; heads of an algorithm have the name that the algorithm gave them."""
    first, *rest = parameter.split(".")
    if first == "further":
        return rest[0]
    return _PARTS.get(first, first)
