"""The order in which minibatches take samples of sequences, and what a policy that remembers is told of them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gymnast.rollout.batch import Batch, Order, column_order

ENVS = st.integers(1, 6)


def columns(
    chunks: int, length: int, n_envs: int, size: int, seed: int = 0, generator: torch.Generator | None = None
) -> Order:
    """One epoch's order over a rollout of so many chunks of `length` steps."""
    generator = generator or torch.Generator().manual_seed(seed)
    return column_order(chunks * length, n_envs, length, size, generator)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5), st.integers(1, 7), ENVS, st.integers(1, 250), st.integers(0, 2**31))
def test_every_sample_comes_once_in_whole_sequences(
    chunks: int, length: int, n_envs: int, size: int, seed: int
) -> None:
    """Each column of a minibatch is one env's steps, in their order and without a gap, from where a sequence may begin."""
    order = columns(chunks, length, n_envs, size, seed)
    assert order.sequence == length and order.index is not None
    assert sorted(order.index.tolist()) == list(range(chunks * length * n_envs))
    pieces = list(order.pieces())
    assert [len(piece) for piece in pieces] == order.sizes
    for piece in pieces:
        step, env = piece.view(length, -1) // n_envs, piece.view(length, -1) % n_envs  # time first
        assert (env == env[0]).all()
        assert (step == step[0] + torch.arange(length)[:, None]).all()
        assert (step[0] % length == 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 7), ENVS, st.integers(1, 250))
def test_minibatches_have_the_size_asked_for_or_one_sequence(chunks: int, length: int, n_envs: int, size: int) -> None:
    """In whole sequences: never more samples than asked for, but where a single sequence has more."""
    sizes = columns(chunks, length, n_envs, size).sizes
    expected = min(max(1, size // length), chunks * n_envs) * length
    assert sizes[:-1] == [expected] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= expected and sizes[-1] % length == 0


def test_every_epoch_has_its_own_order_of_sequences() -> None:
    def epochs(seed: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed(seed)
        return [columns(4, 3, 5, 15, generator=generator).index.tolist() for _ in range(6)]  # type: ignore[union-attr]

    first = epochs(0)
    assert len({tuple(order) for order in first}) == 6
    assert first == epochs(0) and first != epochs(1)


T, N = 6, 4


def remembered() -> Batch:
    """A rollout of T steps of N envs whose every field says where it is from: 10 · t + env."""
    where = 10.0 * torch.arange(T)[:, None] + torch.arange(N)
    state = torch.stack((where, -where), -1)  # two numbers each
    starts = where.remainder(3) == 0
    fields = {"obs": where, "action": where, "state": state, "starts": starts}
    return Batch({name: tensor.flatten(0, 1) for name, tensor in fields.items()}, sequence=T)


def test_the_memory_of_a_whole_rollout_begins_with_its_first_step() -> None:
    batch = remembered()
    memory = batch.memory
    assert memory is not None
    assert memory.state[:, 0].tolist() == [0, 1, 2, 3] and memory.state[:, 1].tolist() == [0, -1, -2, -3]
    assert torch.equal(memory.starts, batch["starts"].view(T, N))
    for same in (batch.with_obs(batch.obs), batch.to(torch.device("cpu"))):
        assert same.memory is not None and torch.equal(same.memory.state, memory.state)


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_the_memory_of_a_minibatch_is_what_its_sequences_begin_with(length: int) -> None:
    batch = remembered()
    order = column_order(T, N, length, 2 * length, torch.Generator().manual_seed(1))
    for piece in order.pieces():
        minibatch = batch.select(piece, sequence=order.sequence)
        memory = minibatch.memory
        assert memory is not None and memory.starts.shape == (length, 2)
        where = minibatch["action"].view(length, 2)
        assert torch.equal(memory.state, torch.stack((where[0], -where[0]), -1))
        assert torch.equal(memory.starts, where.remainder(3) == 0)


def test_single_samples_remember_nothing() -> None:
    batch = remembered()
    assert batch.select(torch.tensor([3, 1])).memory is None
    assert Batch({"action": torch.zeros(3)}).memory is None


def test_graphs_read_lasting_fields_where_the_rollout_keeps_them() -> None:
    """What does not last is copied to one place; the next samples of the rollout are written there."""
    kept = torch.arange(3.0)
    first = Batch({"obs": {"a": kept}, "action": kept, "target": torch.zeros(3)}, lasting=frozenset({"obs", "action"}))
    place = first.in_place()
    assert place["action"] is kept and place.tensors()["obs.a"] is kept
    address = place["target"].data_ptr()
    assert address != first["target"].data_ptr()
    kept += 10  # the next rollout
    place.take(Batch({"obs": {"a": kept}, "action": kept, "target": torch.ones(3)}, lasting=first.lasting))
    assert place["action"].tolist() == place.tensors()["obs.a"].tolist() == [10, 11, 12]
    assert place["target"].tolist() == [1, 1, 1] and place["target"].data_ptr() == address
    assert first["target"].tolist() == [0, 0, 0]
