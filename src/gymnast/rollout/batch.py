"""Samples of the update by name, and the order in which minibatches take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gymnast.policies.base import Memory

Observation = Tensor | dict[str, Tensor]


class Batch:
    """Samples [B, …] by name: what the rollout kept of them, and the targets that the algorithm computed.

    `obs` may have parts. Samples of whole sequences lie time first, and `sequence` is how many steps each has.
    """

    def __init__(
        self,
        fields: Mapping[str, Observation],
        *,
        lasting: frozenset[str] = frozenset(),
        sequence: int | None = None,
        present: Tensor | None = None,
    ) -> None:
        """`lasting` names fields that lie in the rollout's own memory, where the next rollout's will lie too.

        `present` [sequence, n] says which steps there are, where sequences are not equally long.
        """
        self._fields = dict(fields)
        self.lasting = lasting
        self.sequence = sequence
        self.present = present

    def __len__(self) -> int:
        return self["action"].shape[0]

    def __getitem__(self, name: str) -> Tensor:
        return self._fields[name]  # type: ignore[return-value]

    def __setitem__(self, name: str, tensor: Tensor) -> None:
        self._fields[name] = tensor

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    @property
    def obs(self) -> Observation:
        """Observations, whole or in parts."""
        return self._fields["obs"]

    @property
    def mask(self) -> Tensor | None:
        """Possible actions, where the env says so."""
        if "mask" in self._fields:
            return self["mask"]
        return None

    @property
    def memory(self) -> Memory | None:
        """What a policy with memory must know of the sequences."""
        if self.sequence is None:
            return None
        if self.present is None:
            n = len(self) // self.sequence
            return Memory(self["state"][:n], self["starts"].unflatten(0, (self.sequence, n)))
        starts = torch.zeros_like(self.present)
        starts[self.present] = self["starts"]
        return Memory(self["state"], starts, self.present)

    def tensors(self) -> dict[str, Tensor]:
        """All fields, parts of an observation as `obs.<part>`."""
        named: dict[str, Tensor] = {}
        for name, value in self._fields.items():
            if isinstance(value, dict):
                named |= {f"{name}.{part}": tensor for part, tensor in value.items()}
            else:
                named[name] = value
        return named

    def with_obs(self, obs: Observation) -> Batch:
        """The same samples with their observations in another form."""
        return Batch({**self._fields, "obs": obs}, lasting=self.lasting, sequence=self.sequence, present=self.present)

    def _map(
        self, function: Callable[[Tensor], Tensor], *, without: str | None = None, sequence: int | None = None
    ) -> Batch:
        fields: dict[str, Observation] = {}
        for name, value in self._fields.items():
            if name == without:
                continue
            if isinstance(value, dict):
                fields[name] = {part: function(tensor) for part, tensor in value.items()}
            else:
                fields[name] = function(value)
        return Batch(fields, sequence=sequence)

    def select(self, index: Tensor, *, sequence: int | None = None) -> Batch:
        """The samples of `index`, copied; one gather per field and epoch, minibatches are then views.

        Of sequences, the state is that of their first steps alone: it is much larger than a sample, and the rest follows.
        """
        found = self._map(
            lambda tensor: tensor.index_select(0, index), without="state" if sequence else None, sequence=sequence
        )
        if sequence is not None:
            found["state"] = self["state"].index_select(0, index[: len(index) // sequence])
        return found

    def whole_episodes(self, valid: Tensor) -> Batch:
        """The samples of a rollout that belong to whole episodes, [T, N]: of each env the first so many steps."""
        found = self._map(lambda tensor: tensor[valid.flatten()], without="state")
        if self.sequence is not None:
            found["state"] = self["state"][: valid.shape[1]]
            found.sequence, found.present = len(valid), valid
        return found

    def split(self, sizes: Sequence[int]) -> Iterator[Batch]:
        """Consecutive minibatches of these sizes, as views."""
        pieces = {
            name: tensor.split(list(sizes)) for name, tensor in self._fields.items() if isinstance(tensor, Tensor)
        }
        parts = {
            name: {part: tensor.split(list(sizes)) for part, tensor in value.items()}
            for name, value in self._fields.items()
            if isinstance(value, dict)
        }
        for k in range(len(sizes)):
            fields: dict[str, Observation] = {name: views[k] for name, views in pieces.items()}
            for name, views_of in parts.items():
                fields[name] = {part: views[k] for part, views in views_of.items()}
            yield Batch(fields, sequence=self.sequence)

    def in_place(self) -> Batch:
        """The batch for captured graphs, which read tensors where they lie: what a rollout keeps is shared, the rest copied."""
        fields: dict[str, Observation] = dict(self._fields)
        for name in self._fields.keys() - self.lasting:
            fields[name] = self[name].clone()
        return Batch(fields, lasting=self.lasting, sequence=self.sequence)

    def take(self, other: Batch) -> None:
        """The next samples of the same rollout, written to where these lie."""
        for name in self._fields.keys() - self.lasting:
            self[name].copy_(other[name])

    def to(self, device: torch.device) -> Batch:
        """The batch on `device`; what is there already is not copied."""
        moved = self._map(lambda tensor: tensor.to(device), sequence=self.sequence)
        moved.lasting, moved.present = self.lasting, None if self.present is None else self.present.to(device)
        return moved


@dataclass(frozen=True)
class Order:
    """The minibatches of one epoch: consecutive pieces of `index`. None takes all samples as they lie."""

    index: Tensor | None
    sizes: list[int]
    sequence: int | None = None

    def pieces(self) -> Iterator[Tensor]:
        """The indices of each minibatch."""
        assert self.index is not None
        yield from self.index.split(self.sizes)


def flat_order(n: int, size: int, generator: torch.Generator) -> Order:
    """Single samples in a fresh permutation; when one minibatch holds everything their order means nothing."""
    if size >= n:
        return Order(None, [n])
    rest = n % size
    sizes = [size] * (n // size)
    if rest:
        sizes.append(rest)
    return Order(torch.randperm(n, generator=generator, device=generator.device), sizes)


def column_order(steps: int, n_envs: int, length: int, size: int, generator: torch.Generator) -> Order:
    """Sequences of `length` steps in a fresh permutation, for policies that remember; `size` counts samples.

    Samples of the rollout lie at t · n_envs + env. Those of a minibatch lie time first as well.
    """
    chunks = steps // length
    per_minibatch = max(1, size // length)
    chosen = torch.randperm(chunks * n_envs, generator=generator, device=generator.device)
    chunk, env = chosen // n_envs, chosen % n_envs
    first = chunk * length * n_envs + env
    offsets = torch.arange(length, device=generator.device).unsqueeze(1) * n_envs
    groups = (first + offsets).split(per_minibatch, dim=1)
    index = torch.cat([group.flatten() for group in groups])
    return Order(index, [group.numel() for group in groups], sequence=length)
