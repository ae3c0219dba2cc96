"""The replay of off-policy algorithms: the newest transitions, from which minibatches are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from gymnast.policies.base import Field
from gymnast.rollout.batch import Batch


class Replay:
    """A ring of records with declared fields. It is saved as bulk data: a checkpoint writes what is new, not all of it."""

    def __init__(self, capacity: int, fields: Sequence[Field]) -> None:
        self.total = 0
        """Records ever added."""
        self.capacity = capacity
        self._length = 0
        self._kept = {field.name: torch.zeros((capacity, *field.shape), dtype=field.dtype) for field in fields}

    def __len__(self) -> int:
        return self._length

    def add(self, **records: Tensor) -> None:
        """Add as many records as the tensors have rows; the oldest make room."""
        count = len(next(iter(records.values())))
        place = self._places(self.total, count)
        for name, kept in self._kept.items():
            kept[place] = records[name][-len(place) :]
        self.total += count
        self._length = min(self._length + count, self.capacity)

    def sample(self, size: int, generator: torch.Generator) -> Batch:
        """Records drawn with replacement, each as likely as any other."""
        return self._batch(torch.randint(len(self), (size,), generator=generator) + (self.total - len(self)))

    def newest(self, count: int) -> Batch:
        """The last so many records, or all that there are."""
        return self._batch(torch.arange(self.total - min(count, len(self)), self.total))

    def _batch(self, numbers: Tensor) -> Batch:
        place = numbers % self.capacity
        return Batch({name: kept.index_select(0, place) for name, kept in self._kept.items()})

    def _places(self, first: int, count: int) -> Tensor:
        """Where records lie; of more than there is room for, the newest."""
        fit = min(count, self.capacity)
        return torch.arange(first + count - fit, first + count) % self.capacity

    # ---- as bulk data ----------------------------------------------------------------------------------------------

    def records(self, first: int) -> bytes:
        """All records from number `first` on, field after field."""
        place = self._places(first, self.total - first)
        return b"".join(kept[place].numpy().tobytes() for kept in self._kept.values())

    def restore(self, total: int, kept: int, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Hold the newest `kept` of `total` records again, or as many of them as there is room for."""
        for first, raw in pieces:
            self._put(first, raw)
        self.total, self._length = total, min(kept, self.capacity)

    def _put(self, first: int, raw: bytes) -> None:
        bytes_each = {name: tensor[:1].numpy().nbytes for name, tensor in self._kept.items()}
        count, rest = divmod(len(raw), sum(bytes_each.values()))
        if rest:
            raise ValueError("the records of the replay have another size")
        place, start = self._places(first, count), 0
        for name, tensor in self._kept.items():
            end = start + count * bytes_each[name]
            rows = np.frombuffer(raw[start:end], tensor.numpy().dtype).reshape((count, *tensor.shape[1:]))
            tensor[place] = torch.from_numpy(rows.copy())[-len(place) :]
            start = end
