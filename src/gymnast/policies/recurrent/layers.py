"""The recurrent layers of a policy: one memory for actor and critic, or one for each, side by side in the same tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from gymnast.policies.base import Memory
from gymnast.policies.dense import DenseChain
from gymnast.policies.recurrent.cells import CELLS
from gymnast.policies.recurrent.packing import gathered, pack, padded


class RecurrentLayers(nn.Module):
    """From features [B, F] to what is remembered after each step [B, width, size], one layer upon the other."""

    def __init__(self, kind: str, n_in: int, size: int, *, depth: int, width: int, indexed: bool) -> None:
        super().__init__()
        self.kind, self.size, self.depth, self.width = kind, size, depth, width
        self.cell = CELLS[kind]
        n_out = self.cell.gates * size
        self.state_shape = (depth, width, self.cell.kept, size)
        self.inputs = DenseChain([n_in, width * n_out], "tanh", indexed=indexed)
        """What the lowest layer of each memory reads."""
        self.between = nn.ParameterList(nn.Parameter(torch.zeros(width, size, n_out)) for _ in range(depth - 1))
        """What a higher layer reads of the one below."""
        self.between_bias = nn.ParameterList(nn.Parameter(torch.zeros(width, 1, n_out)) for _ in range(depth - 1))
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(width, size, n_out)) for _ in range(depth))
        """What a layer reads of the step before."""
        self.biases = nn.ParameterList()
        if kind == "gru":
            self.biases.extend(nn.Parameter(torch.zeros(width, 1, size)) for _ in range(depth))
        self._plain_lists()

    def _plain_lists(self) -> None:
        """Lists of the parameters: looking them up in the module costs more than a small product."""
        self._between = list(zip(self.between, self.between_bias))
        self._weights = list(self.weights)
        self._biases: list[Any] = list(self.biases) or [None] * self.depth

    def _apply(self, *args: Any, **kwargs: Any) -> RecurrentLayers:
        super()._apply(*args, **kwargs)
        self._plain_lists()
        return self

    def initialise(self, init: str, generator: torch.Generator) -> None:
        """Orthogonal matrices of gain 1 and zero biases, one matrix per memory; or torch's own uniform numbers."""
        if init != "orthogonal":
            bound = 1.0 / math.sqrt(self.size)
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)
            return
        with torch.no_grad():
            first = self.inputs.layers[0]
            first.bias.zero_()  # type: ignore[operator]
            matrices = list(first.weight.chunk(self.width))  # type: ignore[operator]
            for stacked in (*self.between, *self.weights):
                matrices += [matrix.t() for matrix in stacked]
            for matrix in matrices:
                drawn = torch.empty(matrix.shape)
                matrix.copy_(nn.init.orthogonal_(drawn, 1.0, generator=generator))

    def _as_states(self, flat: Tensor) -> Tensor:
        """What is remembered of n episodes, [n, depth, width, kept, size]."""
        return flat.view(-1, *self.state_shape)

    # ---- acting ----------------------------------------------------------------------------------------------------

    def step(self, x: Tensor, flat: Tensor) -> tuple[Tensor, Tensor]:
        """One step of n episodes: outputs [n, width, size] and the state after it, as flat as the one before."""
        n = flat.shape[0]
        states, after = self._as_states(flat), torch.empty_like(flat)
        afters = self._as_states(after)
        read = self.inputs.infer(x).view(n, self.width, -1).transpose(0, 1)
        for level in range(self.depth):
            if level:
                weight, bias = self._between[level - 1]
                read = torch.baddbmm(bias, afters[:, level - 1, :, 0].transpose(0, 1), weight)
            state, there = states[:, level].transpose(0, 1), afters[:, level].transpose(0, 1)
            self.cell.step(read, state, there, self._weights[level], self._biases[level])
        return afters[:, -1, :, 0], after

    # ---- learning --------------------------------------------------------------------------------------------------

    def run(self, x: Tensor, memory: Memory) -> tuple[Tensor, Any]:
        """Outputs [B, width, size] of all steps of the sequences, and what `backprop` needs."""
        packed = pack(memory, self.width)
        states = self._as_states(memory.state)
        read, inputs_tape = self.inputs.run(x)
        tapes: list[Any] = []
        outputs = read
        for level in range(self.depth):
            if level:
                weight, bias = self._between[level - 1]
                read = torch.baddbmm(bias, outputs.transpose(0, 1), weight).transpose(0, 1)
            rows = packed.packed(read.reshape(-1, self.cell.gates * self.size))
            firsts = packed.firsts(states[:, level])
            placed, tape = self.cell.run(rows, firsts, self._weights[level], self._biases[level], packed)
            outputs = packed.unpacked(placed).view(-1, self.width, self.size)
            tapes.append((tape, outputs))
        return outputs, (packed, inputs_tape, tapes)

    def backprop(self, tape: Any, gradient: Tensor, *, to_input: bool = False) -> Tensor | None:
        """Add the gradients of all parameters, given those of the outputs [B, width, size]."""
        packed, inputs_tape, tapes = tape
        for level in range(self.depth - 1, -1, -1):
            weight, bias = self._weights[level], self._biases[level]
            placed = packed.packed(gradient.reshape(-1, self.size))
            reads, products, before = self.cell.backprop(tapes[level][0], placed, weight, packed)
            d_read, d_product = self._by_memory(packed.unpacked(reads)), self._by_memory(packed.unpacked(products))
            weight.grad.baddbmm_(self._by_memory(packed.unpacked(before)).transpose(1, 2), d_product)
            if bias is not None:
                bias.grad.add_(d_product[..., -self.size :].sum(1, keepdim=True))
            if level:
                between, between_bias = self._between[level - 1]
                below = tapes[level - 1][1].transpose(0, 1)
                between.grad.baddbmm_(below.transpose(1, 2), d_read)
                between_bias.grad.add_(d_read.sum(1, keepdim=True))
                gradient = torch.bmm(d_read, between.transpose(1, 2)).transpose(0, 1)
        return self.inputs.backprop(inputs_tape, d_read.transpose(0, 1).flatten(1), to_input=to_input)

    def _by_memory(self, rows: Tensor) -> Tensor:
        """Rows [B · width, …] as [width, B, …]."""
        by_memory: Tensor = rows.unflatten(0, (-1, self.width)).transpose(0, 1)
        return by_memory

    # ---- ordinary PyTorch ------------------------------------------------------------------------------------------

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Outputs [B, width, size] and the flat states after the last step, differentiable by autograd."""
        n = memory.starts.shape[1]
        reads = padded(self.inputs(x), memory)
        states = list(self._as_states(memory.state).unbind(1))
        outputs: list[Tensor] = []
        for t, start in enumerate(memory.starts):
            read = reads[t].view(n, self.width, -1).transpose(0, 1)
            for level in range(self.depth):
                if level:
                    read = torch.baddbmm(
                        self.between_bias[level - 1],
                        states[level - 1][:, :, 0].transpose(0, 1),
                        self.between[level - 1],
                    )
                known = states[level].masked_fill(start.view(-1, 1, 1, 1), 0.0).transpose(0, 1)
                bias = self.biases[level] if len(self.biases) else None
                states[level] = self.cell.plain(read, known, self.weights[level], bias).transpose(0, 1)
            outputs.append(states[-1][:, :, 0])
        return gathered(outputs, memory), torch.stack(states, 1).flatten(1)
