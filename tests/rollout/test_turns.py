"""Rollouts filled lane by lane on a CPU are those that are filled step by step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gymnast.config.schema import PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import VectorEnv
from gymnast.policies.actor_critic import ActorCritic
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import Ended, collect
from gymnast.rollout.turns import collect_by_turns
from gymnast.timing import StageTimer

T, N = 40, 7
CARTPOLE = functools.partial(gym.make, "CartPole-v1", max_episode_steps=25)
TAXI = functools.partial(gym.make, "Taxi-v4", max_episode_steps=25)  # with action masks
ENVS: dict[str, Callable[[], gym.Env]] = {"CartPole": CARTPOLE, "Taxi": TAXI}


def filled(envs: VectorEnv, collected: Any, shared: bool) -> tuple[list[Rollout], list[Ended]]:
    """Two rollouts, one after the other."""
    config = PolicyConfig(hidden=[16], shared_trunk=shared)
    policy = ActorCritic(config, envs.observation_space, envs.action_space, generator=torch.Generator().manual_seed(1))
    generator, rollouts, ended = torch.Generator().manual_seed(2), [], []
    rollout = Rollout(T, envs, policy)
    envs.reset(list(range(N)), rollout.first_row)
    for _ in range(2):
        ended.append(collected(policy, envs, rollout, generator, StageTimer()))
        copied = Rollout(T, envs, policy)
        for name in ("action", "params", "log_prob", "value"):
            copied[name].copy_(rollout[name])
        for name in ("obs_arrays", "reward", "terminated", "truncated"):
            getattr(copied, name)[...] = getattr(rollout, name)
        copied.next["value"][...] = rollout.next["value"]
        rollouts.append(copied)
        rollout.carry_over()
    return rollouts, ended


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ENVS)
def test_turns_change_nothing(name: str, shared: bool) -> None:
    """Same actions, observations, ends and values; lanes of two, one, two and two."""
    threads = torch.get_num_threads()
    lanes = LanePool(functools.partial(InProcessVector, ENVS[name]), N, n_workers=2, timeout=20.0)
    with closing(InProcessVector(ENVS[name], N)) as reference, closing(lanes):
        expected, ends = filled(reference, collect, shared)
        found, also = filled(lanes, collect_by_turns, shared)
    assert torch.get_num_threads() == threads
    for one, other in zip(found, expected, strict=True):
        for array in ("obs_arrays", "reward", "terminated", "truncated"):
            assert np.array_equal(getattr(one, array), getattr(other, array)), array
        assert torch.equal(one["action"], other["action"])
        for tensor in ("params", "log_prob", "value"):
            torch.testing.assert_close(one[tensor], other[tensor], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(one.next["value"], other.next["value"], rtol=1e-6, atol=1e-6)
    shown = [[[(t, e.index, e.ret, e.length) for t, e in ended] for ended in side] for side in (also, ends)]
    assert shown[0] == shown[1] and shown[0][0]


def test_progress_is_told() -> None:
    lanes = LanePool(functools.partial(InProcessVector, CARTPOLE), 4, n_workers=1, timeout=20.0)
    with closing(lanes):
        policy = ActorCritic(PolicyConfig(hidden=[8]), lanes.observation_space, lanes.action_space)
        rollout = Rollout(130, lanes, policy)
        lanes.reset([0, 1, 2, 3], rollout.first_row)
        told: list[int] = []
        collect_by_turns(policy, lanes, rollout, torch.Generator().manual_seed(0), StageTimer(), told.append)
    assert told == [64, 128]
