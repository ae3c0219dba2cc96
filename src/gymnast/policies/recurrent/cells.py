"""LSTM and GRU: one step for acting, packed pieces and their derivatives for learning, and plain PyTorch for autograd.

A recurrent layer is bound by the number of small operations per time step. So what does not depend on the step before (the
products with the input, all derivatives of gates, the gradients of the weights) is computed for all steps at once, and only the
rest is left to the loop: six to eight operations forward, three to five back. Several layers of the same shape lie side by
side [width, …] and share these operations.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from gymnast.policies.recurrent.packing import Packed, alive, shrunk


class Cell(Protocol):
    """How a layer goes from one time step to the next. Weights are [width, size, gates · size]."""

    gates: int
    """Blocks of the weights."""
    kept: int
    """Vectors that are remembered; the first is also the output."""

    def step(self, read: Tensor, state: Tensor, after: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        """One time step, from what was read [width, n, gates · size] and the state [width, n, kept, size] into `after`."""

    def run(
        self, read: Tensor, firsts: Tensor, weight: Tensor, bias: Tensor | None, packed: Packed
    ) -> tuple[Tensor, Any]:
        """Outputs [places, size] of packed rows, which are overwritten, and what `backprop` needs."""

    def backprop(self, tape: Any, gradient: Tensor, weight: Tensor, packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients by what was read and by the products with the weights, and what the products were made with.

        The gradient of the outputs is overwritten.
        """

    def plain(self, read: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """`step` in ordinary differentiable operations; returns the state after it."""


class LSTM:
    """Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000; gates in the order o, i, f, g.

    c' = σ(f)·c + σ(i)·tanh(g), h' = σ(o)·tanh(c'). The three sigmoids lie side by side, and so do the three gates that c' depends
    on.
    """

    gates = 4
    kept = 2

    def step(self, read: Tensor, state: Tensor, after: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        """One time step."""
        size = weight.shape[1]
        gates = torch.baddbmm(read, state[:, :, 0], weight)
        gates[..., : 3 * size].sigmoid_()
        gates[..., 3 * size :].tanh_()
        o, i, f, g = gates.split(size, -1)
        cell = torch.mul(i, g).addcmul_(f, state[:, :, 1])
        after[:, :, 1] = cell
        torch.mul(o, cell.tanh_(), out=after[:, :, 0])

    def run(
        self, read: Tensor, firsts: Tensor, weight: Tensor, bias: Tensor | None, packed: Packed
    ) -> tuple[Tensor, Any]:
        """All time steps, each for the pieces that have one."""
        size, width = weight.shape[1], packed.width
        hidden, cell, squashed = (read.new_empty(len(read), size) for _ in range(3))
        blocks = packed.blocks
        gates = read.split(blocks)
        sigmoids, candidates = read[:, : 3 * size].split(blocks), read[:, 3 * size :].split(blocks)
        o, i, f, _ = (part.split(blocks) for part in read.split(size, -1))
        hs, cs, ss = hidden.split(blocks), cell.split(blocks), squashed.split(blocks)
        h, c = firsts.unbind(1)
        before = packed.sizes[0]
        for t, n in enumerate(packed.sizes):
            if n != before:
                h, c, before = shrunk(h, width, n), shrunk(c, width, n), n
            gates[t].view(width, n, -1).baddbmm_(h.view(width, n, size), weight)
            sigmoids[t].sigmoid_()
            candidates[t].tanh_()
            torch.mul(i[t], candidates[t], out=cs[t]).addcmul_(f[t], c)
            torch.tanh(cs[t], out=ss[t])
            h, c = torch.mul(o[t], ss[t], out=hs[t]), cs[t]
        return hidden, (read, firsts, hidden, cell, squashed)

    def backprop(self, tape: Any, gradient: Tensor, weight: Tensor, packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
        """From the last time step back. All factors that do not depend on gradients are computed before."""
        read, firsts, hidden, cell, squashed = tape
        size, width, blocks = weight.shape[1], packed.width, packed.blocks
        o, i, f, g = read.split(size, -1)
        before = packed.before(firsts, torch.stack((hidden, cell), 1))
        factors = torch.empty_like(read).unflatten(-1, (4, size))
        factors[:, 0] = squashed * o * (1.0 - o)
        factors[:, 1] = g * i * (1.0 - i)
        factors[:, 2] = before[:, 1] * f * (1.0 - f)
        factors[:, 3] = i * (1.0 - g * g)
        to_cell = o * (1.0 - squashed * squashed)
        d_gates, d_output, d_rest = factors.split(blocks), factors[:, 0].split(blocks), factors[:, 1:].split(blocks)
        to_cells, forgets, d_hidden = to_cell.split(blocks), f.split(blocks), gradient.split(blocks)
        back = weight.transpose(1, 2)
        last = packed.sizes[-1]
        d_cell = read.new_zeros(width * last, size)

        def through(t: int) -> None:
            """From the gradient of a step's output and cell to those of its gates, which take the place of the factors."""
            d_cell.addcmul_(d_hidden[t], to_cells[t])
            d_output[t].mul_(d_hidden[t])
            d_rest[t].mul_(d_cell.unsqueeze(1))

        for t, n in alive(packed.sizes):
            through(t)
            earlier = d_hidden[t - 1].unflatten(0, (width, -1))[:, :n]
            earlier.baddbmm_(d_gates[t].view(width, n, -1), back)
            d_cell.mul_(forgets[t])
            if packed.sizes[t - 1] != n:
                grown = read.new_zeros(width, packed.sizes[t - 1], size)
                grown[:, :n] = d_cell.view(width, n, size)
                d_cell = grown.flatten(0, 1)
        through(0)
        flat = factors.flatten(1)
        return flat, flat, before[:, 0]

    def plain(self, read: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """One time step for autograd."""
        o, i, f, g = torch.baddbmm(read, state[:, :, 0], weight).chunk(4, -1)
        cell = f.sigmoid() * state[:, :, 1] + i.sigmoid() * g.tanh()
        return torch.stack((o.sigmoid() * cell.tanh(), cell), 2)


class GRU:
    """Cho et al. 2014 in the form of cuDNN and PyTorch; gates in the order r, z, n.

    n' = tanh(n + σ(r)·(h·W + b)), h' = (1 − σ(z))·n' + σ(z)·h. Only the candidate has a bias of its own inside the reset.
    """

    gates = 3
    kept = 1

    def step(self, read: Tensor, state: Tensor, after: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        """One time step."""
        assert bias is not None
        size, h = weight.shape[1], state[:, :, 0]
        product = torch.bmm(h, weight)
        r, z = product[..., : 2 * size].add_(read[..., : 2 * size]).sigmoid_().split(size, -1)
        inner = product[..., 2 * size :].add_(bias)
        candidate = torch.addcmul(read[..., 2 * size :], r, inner).tanh_()
        after[:, :, 0] = torch.lerp(candidate, h, z)

    def run(
        self, read: Tensor, firsts: Tensor, weight: Tensor, bias: Tensor | None, packed: Packed
    ) -> tuple[Tensor, Any]:
        """All time steps, each for the pieces that have one."""
        assert bias is not None
        size, width, blocks = weight.shape[1], packed.width, packed.blocks
        hidden = read.new_empty(len(read), size)
        candidate = read[:, 2 * size :].contiguous()
        inner = read[:, 2 * size :]
        for block in inner.split(blocks):
            block.unflatten(0, (width, -1)).copy_(bias)
        gates, sigmoids = read.split(blocks), read[:, : 2 * size].split(blocks)
        r, z, inners = (part.split(blocks) for part in read.split(size, -1))
        candidates, hs = candidate.split(blocks), hidden.split(blocks)
        h, before = firsts[:, 0], packed.sizes[0]
        for t, n in enumerate(packed.sizes):
            if n != before:
                h, before = shrunk(h, width, n), n
            gates[t].view(width, n, -1).baddbmm_(h.view(width, n, size), weight)
            sigmoids[t].sigmoid_()
            candidates[t].addcmul_(r[t], inners[t]).tanh_()
            h = torch.lerp(candidates[t], h, z[t], out=hs[t])
        return hidden, (read, firsts, hidden, candidate)

    def backprop(self, tape: Any, gradient: Tensor, weight: Tensor, packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
        """From the last time step back."""
        read, firsts, hidden, candidate = tape
        size, width, blocks = weight.shape[1], packed.width, packed.blocks
        r, z, inner = read.split(size, -1)
        before = packed.before(firsts[:, 0], hidden)
        to_candidate = (1.0 - z) * (1.0 - candidate * candidate)
        factors = torch.empty_like(read).unflatten(-1, (3, size))
        factors[:, 0] = to_candidate * inner * r * (1.0 - r)
        factors[:, 1] = (before - candidate) * z * (1.0 - z)
        factors[:, 2] = to_candidate * r
        d_gates, updates, d_hidden = factors.split(blocks), z.split(blocks), gradient.split(blocks)
        back = weight.transpose(1, 2)
        for t, n in alive(packed.sizes):
            d_gates[t].mul_(d_hidden[t].unsqueeze(1))
            earlier = d_hidden[t - 1].unflatten(0, (width, -1))[:, :n]
            earlier.baddbmm_(d_gates[t].view(width, n, -1), back)
            earlier.addcmul_(d_hidden[t].view(width, n, size), updates[t].unflatten(0, (width, n)))
        d_gates[0].mul_(d_hidden[0].unsqueeze(1))
        products = factors.flatten(1)
        reads = products.clone()
        torch.mul(gradient, to_candidate, out=reads[:, 2 * size :])
        return reads, products, before

    def plain(self, read: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """One time step for autograd."""
        assert bias is not None
        h = state[:, :, 0]
        read_r, read_z, read_n = read.chunk(3, -1)
        r, z, n = torch.bmm(h, weight).chunk(3, -1)
        update = (read_z + z).sigmoid()
        candidate = (read_n + (read_r + r).sigmoid() * (n + bias)).tanh()
        return ((1.0 - update) * candidate + update * h).unsqueeze(2)


CELLS: dict[str, Cell] = {"lstm": LSTM(), "gru": GRU()}
