"""Chains of linear layers: the multilayer perceptron of every policy, with its backward pass written out.

At the sizes of classic control an update is bound by the number of operations, not by arithmetic: autograd nearly doubles
the time of a 64×64 network. So plain chains keep their activations on a tape and push the gradient back themselves;
`forward` is the same function for autograd, and the tests hold the two equal. Chains with layer norm, batch norm or dropout let
autograd do the backward pass behind the same two calls.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gymnast.policies.activations import ACTIVATIONS
from gymnast.policies.batch_norm import FrozenBatchNorm

Tape = Any


class DenseChain(nn.Module):
    """Linear layers with an activation between them, and after the last one if `activate_last`.

    The input is [B, sizes[0]], or whole numbers [B] / [B, K] that index the first layer's columns
    (`indexed`): the same function as a one-hot input, without the multiplication by zeros.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str,
        *,
        activate_last: bool = False,
        layer_norm: bool = False,
        batch_norm: bool = False,
        dropout: float = 0.0,
        indexed: bool = False,
    ) -> None:
        super().__init__()
        linears = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        self.layers = nn.ModuleList(linears)
        if activate_last:
            n_activated = len(self.layers)
        else:
            n_activated = len(self.layers) - 1
        self.norms: nn.ModuleList | None = None
        if layer_norm:
            self.norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes[1 : n_activated + 1])
        elif batch_norm:
            self.norms = nn.ModuleList(FrozenBatchNorm(size) for size in sizes[1 : n_activated + 1])
        self.dropout = dropout
        self.indexed = indexed
        self.by_hand = self.norms is None and dropout == 0.0
        self._activation = ACTIVATIONS[activation]
        self._n_activated = n_activated
        # Plain lists of the parameters: module attribute look-ups cost more than the small matrix products.
        self._weights = [layer.weight for layer in linears]
        self._biases = [layer.bias for layer in linears]
        self._columns: list[Tensor] = []
        self.bind()

    def bind(self) -> None:
        """Take fresh transposed views of the weights; needed whenever their storage changes."""
        self._columns = [weight.detach().t() for weight in self._weights]

    def _apply(self, *args: Any, **kwargs: Any) -> DenseChain:
        super()._apply(*args, **kwargs)  # .to(device) and friends give the parameters new storage
        self.bind()
        return self

    def orthogonal_(self, hidden_gain: float, last_gain: float, generator: torch.Generator) -> None:
        """Orthogonal weights and zero biases; the last layer has its own gain."""
        with torch.no_grad():
            for i, weight in enumerate(self._weights):
                if i == len(self._weights) - 1:
                    gain = last_gain
                else:
                    gain = hidden_gain
                nn.init.orthogonal_(weight, gain, generator=generator)
                self._biases[i].zero_()

    def uniform_(self, generator: torch.Generator) -> None:
        """torch's own initialisation of linear layers, from an explicit generator."""
        with torch.no_grad():
            for weight, bias in zip(self._weights, self._biases):
                bound = 1.0 / math.sqrt(weight.shape[1])
                weight.uniform_(-bound, bound, generator=generator)
                bias.uniform_(-bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """The chain as ordinary differentiable operations."""
        for i, (weight, bias) in enumerate(zip(self._weights, self._biases)):
            if self.indexed and i == 0:
                x = self._indexed_layer(x)
            else:
                x = F.linear(x, weight, bias)
            if i < self._n_activated:
                if self.norms is not None:
                    x = self.norms[i](x)
                x = self._activation.plain(x)
                x = F.dropout(x, self.dropout, self.training)
        return x

    def _indexed_layer(self, x: Tensor) -> Tensor:
        columns = self._weights[0].t()
        if x.dim() == 1:
            return columns.index_select(0, x).add(self._biases[0])
        total = self._biases[0].expand(x.shape[0], -1).clone()
        for k in range(x.shape[1]):
            total += columns.index_select(0, x[:, k])
        return total

    def infer(self, x: Tensor) -> Tensor:
        """The chain without a tape, for acting."""
        if not self.by_hand:
            return self.forward(x)
        forward = self._activation.forward
        for i in range(len(self._columns)):
            x = self._layer(i, x)
            if i < self._n_activated:
                x = forward(x)
        return x

    @property
    def rectifies(self) -> bool:
        """Whether its activation is a ReLU, whose units can die."""
        return self._activation is ACTIVATIONS["relu"]

    def activated(self, x: Tensor) -> list[Tensor]:
        """What each layer with an activation gives of an input, for those who look on."""
        found: list[Tensor] = []
        for i in range(self._n_activated):
            linear = (
                self._indexed_layer(x) if self.indexed and i == 0 else F.linear(x, self._weights[i], self._biases[i])
            )
            if self.norms is not None:
                linear = self.norms[i](linear)
            x = self._activation.plain(linear)
            found.append(x)
        return found

    def _layer(self, i: int, x: Tensor) -> Tensor:
        """Linear layer i, scaled as the activation after it wants."""
        scale = self._activation.scale if i < self._n_activated else 1.0
        if self.indexed and i == 0:
            y = self._indexed_layer(x)
            if scale == 1.0:
                return y
            return y.mul_(scale)
        return torch.addmm(self._biases[i], x, self._columns[i], beta=scale, alpha=scale)

    def run(self, x: Tensor) -> tuple[Tensor, Tape]:
        """The chain and what `backprop` needs."""
        if not self.by_hand:
            with torch.enable_grad():
                x = x.detach().requires_grad_(x.is_floating_point())
                y = self.forward(x)
            return y.detach(), (x, y)
        activation, n = self._activation, self._n_activated
        inputs: list[Tensor] = []
        kept: list[Tensor] = []
        for i in range(len(self._columns)):
            inputs.append(x)
            x = self._layer(i, x)
            if i < n:
                before = x
                x = activation.forward(x)
                kept.append(before if activation.keeps_input else x)
        return x, (inputs, kept)

    def backprop(self, tape: Tape, gradient: Tensor, *, to_input: bool = False) -> Tensor | None:
        """Add the parameters' gradients to `.grad`; return the input's gradient when asked."""
        if not self.by_hand:
            x, y = tape
            torch.autograd.backward(y, gradient)
            to_its_input: Tensor | None = x.grad
            if to_input:
                return to_its_input
            return None
        inputs, kept = tape
        backward = self._activation.backward
        for i in range(len(inputs) - 1, -1, -1):
            if i < len(kept):
                gradient = backward(gradient, kept[i])
            weight_grad, x = self._weights[i].grad, inputs[i]
            self._biases[i].grad.add_(gradient.sum(0))  # type: ignore[union-attr]
            if i == 0 and self.indexed:
                columns = gradient.t()
                for index in [x] if x.dim() == 1 else x.unbind(1):
                    weight_grad.index_add_(1, index, columns)  # type: ignore[union-attr]
                return None
            weight_grad.addmm_(gradient.t(), x)  # type: ignore[union-attr]
            if i > 0 or to_input:
                gradient = gradient.mm(self._weights[i])
        if to_input:
            return gradient
        return None
