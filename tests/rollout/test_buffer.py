"""Samples are neither lost nor repeated on their way from the rollout into minibatches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_vector import ScriptedVector, Step

from gymnast.algorithms.base import Algorithm, Loss
from gymnast.config.schema import PolicyConfig
from gymnast.envs.vector import VectorEnv
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch
from gymnast.rollout.buffer import Rollout
from gymnast.training.update import Learner, update

NUMBERED = ("log_prob", "value", "advantage", "target", "a_field_of_a_plug_in")


def numbered(n: int) -> Batch:
    """A batch whose every field says which sample it belongs to."""
    ids = torch.arange(n, dtype=torch.float32)
    fields = {"obs": {"a": ids[:, None].clone(), "b": torch.arange(n)}, "action": torch.arange(n) % 2}
    fields |= {name: ids.clone() for name in NUMBERED}
    return Batch({**fields, "mask": torch.ones(n, 2) > 0})


class Spy(Algorithm):
    """An algorithm that writes down which samples it was shown and wants nothing."""

    rnd = None

    def __init__(self, size: int) -> None:
        self.size, self.seen = size, []

    def batch_size(self, samples: int) -> int:
        return self.size

    def loss(self, outputs, batch, c):
        ids = batch.obs["b"].tolist()
        # All fields of a sample travel together.
        for field in (batch.obs["a"][:, 0], *(batch[name] for name in NUMBERED)):
            assert field.tolist() == ids
        assert batch["action"].tolist() == [i % 2 for i in ids]
        assert batch.mask.shape == (len(ids), 2) and batch.memory is None
        self.seen.append(ids)
        nothing = torch.zeros(len(batch))
        gradients = {"log_prob": nothing, "value": nothing}
        return Loss(gradients, {"train/policy_loss": nothing, "train/entropy": nothing})


class StillOptimizer:
    def step(self, learning_rate: float) -> None:
        """Stand still."""

    def state(self) -> dict:
        return {}


SPACE = spaces.Dict(a=spaces.Box(-1, 1, (1,)), b=spaces.Discrete(10_000))
POLICY = ActorCritic(PolicyConfig(hidden=[]), SPACE, spaces.Discrete(2))
FLAT = FlatParameters(POLICY)


def epochs_seen(n: int, size: int, n_epochs: int, seed: int = 0) -> list[list[list[int]]]:
    """The minibatches of each epoch, as lists of sample ids."""
    spy = Spy(size)
    c = {"n_epochs": float(n_epochs), "learning_rate": 1.0}
    result = update(Learner(POLICY, FLAT, StillOptimizer(), spy, torch.Generator().manual_seed(seed)), numbered(n), c)
    per_epoch = -(-n // size)
    assert result.updates == len(spy.seen) == per_epoch * n_epochs
    return [spy.seen[i : i + per_epoch] for i in range(0, len(spy.seen), per_epoch)]


def order_of(epoch: list[list[int]]) -> tuple[int, ...]:
    return tuple(i for minibatch in epoch for i in minibatch)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 70), size=st.integers(1, 80), n_epochs=st.integers(1, 4), seed=st.integers(0, 2**31))
def test_every_epoch_shows_every_sample_once(n, size, n_epochs, seed):
    for epoch in epochs_seen(n, size, n_epochs, seed):
        assert sorted(order_of(epoch)) == list(range(n))
        sizes = [len(minibatch) for minibatch in epoch]
        assert sizes[:-1] == [size] * (len(sizes) - 1)
        assert sizes[-1] == (n % size or size if size < n else n)


def test_every_epoch_has_its_own_permutation():
    orders = [order_of(epoch) for epoch in epochs_seen(64, 16, 6)]
    assert len(set(orders)) == 6 and tuple(range(64)) not in orders
    assert orders == [order_of(epoch) for epoch in epochs_seen(64, 16, 6)]
    assert orders != [order_of(epoch) for epoch in epochs_seen(64, 16, 6, seed=1)]


def test_permutations_are_uniform():
    # Over many epochs each of the 3! orders of three samples comes equally often.
    orders = [order_of(epoch) for epoch in epochs_seen(3, 1, 600)]
    counts = np.array([orders.count(order) for order in set(orders)])
    assert len(counts) == 6
    assert ((counts - 100) ** 2 / 100).sum() < 20.5  # chi-square, 5 degrees of freedom, p = 0.001


def test_minibatches_are_views_of_one_gather():
    batch = numbered(10).select(torch.randperm(10))
    parts = list(batch.split([4, 4, 2]))
    assert [len(part) for part in parts] == [4, 4, 2]
    parts[1]["advantage"].fill_(-1.0)
    assert (batch["advantage"][4:8] == -1).all() and (batch["advantage"][:4] >= 0).all()
    assert next(numbered(10).split([10])).obs["a"].shape == (10, 1)


class DictVector(ScriptedVector):
    """Dict observations, for the layout alone."""

    def __init__(self, n_envs: int) -> None:
        super().__init__([0] * n_envs, [[Step(0)]] * n_envs, first_mask=(True, True))
        self.observation_space = SPACE


def filled(envs: VectorEnv, n_steps: int) -> Rollout:
    """A rollout whose observation says where it stands: 10 × step + env."""
    policy = ActorCritic(PolicyConfig(hidden=[]), envs.observation_space, envs.action_space)
    rollout = Rollout(n_steps, envs, policy)
    where = 10 * np.arange(n_steps + 1)[:, None] + np.arange(envs.n_envs)
    if isinstance(rollout.obs_arrays, dict):
        rollout.obs_arrays["a"][..., 0] = where
        rollout.obs_arrays["b"][...] = where
    else:
        rollout.obs_arrays[..., 0] = where
    rollout["action"][...] = torch.from_numpy(where[:-1] % 2)
    rollout["value"][...] = torch.from_numpy(where)
    rollout["log_prob"][...] = torch.from_numpy(-where[:-1])
    if rollout.mask_array is not None:
        rollout.mask_array[..., 0] = where % 2 == 0
    return rollout


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_all_fields_of_a_flat_sample_belong_together(kind):
    envs = DictVector(3) if kind == "dict" else ScriptedVector([0] * 3, [[Step(0)]] * 3, first_mask=(True, True))
    rollout = filled(envs, 4)
    where = (10 * np.arange(4)[:, None] + np.arange(3)).astype(np.float32)
    rollout.valid = where % 3 != 0
    batch = rollout.batch(advantage=where * 2, target=where * 3)
    ids = batch["value"].tolist()
    assert ids == [x for x in where.flatten().tolist() if x % 3]
    obs = batch.obs["a"] if kind == "dict" else batch.obs
    assert obs[:, 0].tolist() == ids
    assert (-batch["log_prob"]).tolist() == ids
    assert (batch["advantage"] / 2).tolist() == (batch["target"] / 3).tolist() == ids
    assert batch.mask[:, 0].tolist() == [x % 2 == 0 for x in ids]
    if kind == "dict":
        assert batch.obs["b"].tolist() == ids


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_the_state_is_the_last_row_and_comes_back_as_such(kind):
    def make():
        return DictVector(2) if kind == "dict" else ScriptedVector([0] * 2, [[Step(0)]] * 2, first_mask=(True, True))

    rollout = filled(make(), 5)
    rollout.length = 3
    state = rollout.state()
    (rollout.obs_arrays["a"] if kind == "dict" else rollout.obs_arrays)[...] = -1  # the state is a copy
    other = Rollout(5, make(), ActorCritic(PolicyConfig(hidden=[]), make().observation_space, spaces.Discrete(2)))
    other.load_state(state)
    other.carry_over()
    first = other.obs["a"][0, :, 0] if kind == "dict" else other.obs[0, :, 0]
    assert first.tolist() == [30, 31]
    assert other.mask[0, :, 0].tolist() == [True, False]
    if kind == "dict":
        assert other.obs["b"][0].tolist() == [30, 31]


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_the_row_carried_over_is_the_last_one_filled(kind):
    envs = DictVector(2) if kind == "dict" else ScriptedVector([0] * 2, [[Step(0)]] * 2, first_mask=(True, True))
    rollout = filled(envs, 5)
    rollout.length = 3
    rollout.carry_over()
    for obs in rollout.obs.values() if kind == "dict" else [rollout.obs]:
        assert obs[0].flatten().tolist() == [30, 31]
    assert rollout.mask[0, :, 0].tolist() == [True, False]


def test_envs_and_torch_share_the_memory():
    rollout = filled(ScriptedVector([0] * 2, [[Step(0)]] * 2), 3)
    rollout.rows[1].obs[1] = 7.0
    assert float(rollout.obs_at(2)[1, 0]) == 7.0 and float(rollout.obs_steps[2][1, 0]) == 7.0
    rollout.first_row.obs[0] = 8.0
    assert float(rollout.obs_at(0)[0, 0]) == 8.0
    rollout.steps["action"][2].fill_(1)
    assert (rollout.action_arrays[2] == 1).all() and (rollout["action"][2] == 1).all()
