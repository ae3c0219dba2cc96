"""Sequences cut where episodes begin, so that a recurrent layer computes all pieces side by side and never masks anything.

Episodes are often shorter than sequences. Eight sequences of 128 steps with an episode of 20 steps after the other are about
fifty pieces: the layer then takes as many steps as the longest piece has, not 128, and each step serves more rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gymnast.policies.base import Memory


@dataclass(frozen=True)
class Packed:
    """Where each step of a batch lies once its pieces are sorted: time first, the longest piece first, nothing between.

    With several layers side by side (`width`), each step of a piece has a row for each of them. The rows of one time step are a
    contiguous block [width, pieces].
    """

    sizes: list[int]
    """How many pieces have a first step, a second one, and so on."""
    width: int
    rows: Tensor
    """Which row of the batch [B · width] lies at each place."""
    places: Tensor
    """The inverse: at which place each row lies."""
    previous: Tensor
    """Where each place finds what was remembered before it, counted in the first states followed by all places."""
    sequence: Tensor
    """Which sequence each piece belongs to."""
    carried: Tensor
    """Whether a piece goes on with what its sequence began with; the others begin an episode."""

    @property
    def blocks(self) -> list[int]:
        """Rows of each time step."""
        return [self.width * size for size in self.sizes]

    def firsts(self, states: Tensor) -> Tensor:
        """What each piece begins with [width · pieces, …], from the states of the sequences [n, width, …]."""
        chosen = states.index_select(0, self.sequence)
        shape = (-1,) + (1,) * (chosen.dim() - 1)
        return (chosen * self.carried.view(shape)).transpose(0, 1).flatten(0, 1)

    def packed(self, rows: Tensor) -> Tensor:
        """Rows of the batch [B · width, …] at their places."""
        return rows.index_select(0, self.rows)

    def unpacked(self, placed: Tensor) -> Tensor:
        """The inverse of `packed`."""
        return placed.index_select(0, self.places)

    def before(self, firsts: Tensor, placed: Tensor) -> Tensor:
        """What was remembered before each step, from the first states and those after each step."""
        return torch.cat((firsts, placed)).index_select(0, self.previous)


def pack(memory: Memory, width: int) -> Packed:
    """Cut and sort the sequences of a batch. On a GPU, this waits for `starts`."""
    device = memory.starts.device
    begins = memory.starts.cpu().numpy().copy()  # host sync
    steps, n = begins.shape
    told = begins[0].copy()
    begins[0] = True
    if memory.present is None:
        lengths = np.full(n, steps)
        row_of = np.arange(steps * n).reshape(steps, n)
    else:
        present = memory.present.cpu().numpy()  # host sync
        lengths = present.sum(0)
        begins &= present
        row_of = present.ravel().cumsum().reshape(steps, n) - 1
    sequence, first = np.nonzero(begins.T)
    size = _piece_lengths(sequence, first, lengths)
    longest_first = np.argsort(-size, kind="stable")
    sequence, first, size = sequence[longest_first], first[longest_first], size[longest_first]
    at = np.arange(size[0])[:, None]
    exists = at < size
    grid = row_of[np.minimum(first + at, steps - 1), sequence]
    exists = np.broadcast_to(exists[:, None, :], (len(exists), width, len(size)))
    rows = (grid[:, None, :] * width + np.arange(width)[:, None])[exists]
    place = np.arange(len(rows))
    places = np.empty_like(rows)
    places[rows] = place
    carried = (first == 0) & ~told[sequence]
    return Packed(
        sizes=exists[:, 0].sum(1).tolist(),
        width=width,
        rows=torch.from_numpy(rows).to(device),
        places=torch.from_numpy(places).to(device),
        previous=torch.from_numpy(_previous(exists, place)).to(device),
        sequence=torch.from_numpy(sequence).to(device),
        carried=torch.from_numpy(carried).to(device),
    )


def _piece_lengths(sequence: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Steps of each piece: it ends where the next one of its sequence begins, or with the sequence."""
    begin = np.concatenate(([0], np.cumsum(lengths)))
    at = begin[sequence] + first
    return np.diff(np.append(at, begin[-1]))


def _previous(exists: np.ndarray, place: np.ndarray) -> np.ndarray:
    """For each place, that of the same piece and layer one time step before; the first states come before all places."""
    first = exists[0].size
    found = np.empty(exists.shape, np.int64)
    found[0] = np.arange(first).reshape(exists[0].shape)
    at = np.zeros(exists[1:].shape, np.int64)
    at[exists[:-1]] = place[: len(place) - int(exists[-1].sum())]
    found[1:] = at + first
    return np.asarray(found[exists])


def shrunk(block: Tensor, width: int, size: int) -> Tensor:
    """The rows of a block [width · pieces, …] that belong to its first `size` pieces."""
    kept: Tensor = block.unflatten(0, (width, -1))[:, :size].flatten(0, 1)
    return kept


def padded(rows: Tensor, memory: Memory) -> Tensor:
    """Rows of the batch as [L, n, …], with zeros for steps that are not there."""
    if memory.present is None:
        whole: Tensor = rows.unflatten(0, memory.starts.shape)
        return whole
    grid = rows.new_zeros((*memory.starts.shape, *rows.shape[1:]))
    return grid.masked_scatter(_like(memory.present, grid), rows)


def gathered(steps: list[Tensor], memory: Memory) -> Tensor:
    """The inverse of `padded`, from one tensor [n, …] per step."""
    if memory.present is None:
        return torch.cat(steps)
    return torch.stack(steps)[memory.present]


def _like(present: Tensor, grid: Tensor) -> Tensor:
    return present.view(*present.shape, *(1,) * (grid.dim() - 2)).expand_as(grid)


def alive(block_sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Each time step but the first, from the last one back, with how many pieces it has."""
    for t in range(len(block_sizes) - 1, 0, -1):
        yield t, block_sizes[t]
