"""Policies that remember are evaluated and traced with what they remember of each episode, and of no other."""

from __future__ import annotations

import functools
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_policies import Summing

from gymnast.config.schema import EnvConfig, PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import VectorEnv
from gymnast.evaluation.evaluate import evaluate
from gymnast.evaluation.trace import record_episode

SEEDS = list(range(5))


class Recall(gym.Env):
    """The first observation of an episode says which action pays until its end; the others say nothing."""

    observation_space = spaces.Box(-1, 1, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pays, self.left = int(self.np_random.integers(2)), int(self.np_random.integers(2, 9))
        return np.array([2 * self.pays - 1], np.float32), {}

    def step(self, action):
        self.left -= 1
        reward = 1.0 if action == self.pays else -1.0
        return np.zeros(1, np.float32), reward, self.left == 0, False, {}


gym.register("Recall-v0", Recall)


def recalling() -> Summing:
    """Acts by the sum of what it has seen in the episode, and values it."""
    policy = Summing(PolicyConfig(), Recall.observation_space, Recall.action_space)
    with torch.no_grad():
        policy.actor.copy_(torch.tensor([-20.0, 20.0]))
    return policy


def in_lanes() -> LanePool:
    """Of which no lane may be acted for by itself: what is remembered is kept for all slots together."""
    return LanePool(functools.partial(InProcessVector, Recall), 5, n_workers=2, timeout=20.0)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(
    "made", [functools.partial(InProcessVector, Recall, 5), in_lanes], ids=["one process", "lanes"]
)
def test_every_step_of_every_episode_is_right(made: functools.partial[VectorEnv], deterministic: bool) -> None:
    """Several episodes per slot, of unlike lengths; forgetting and mixing up would both cost rewards."""
    with closing(made()) as envs:
        found = evaluate(recalling(), envs, 33, SEEDS, deterministic=deterministic)
    assert found.returns == [float(length) for length in found.lengths]
    assert len(set(found.lengths)) > 3


def test_an_episode_is_traced_with_its_memory() -> None:
    """Actions, probabilities and values, the last observation's too; an episode that came before changes nothing."""
    traces = [record_episode(recalling(), EnvConfig(id="Recall-v0"), seed=seed) for seed in (3, 4, 5, 3)]
    for trace in traces:
        cue = float(trace.observations[0][0])
        assert trace.rewards == [1.0] * len(trace)
        assert trace.values == [cue] * (len(trace) + 1)
        assert trace.probabilities is not None
        assert all(probabilities.max() > 0.99 for probabilities in trace.probabilities)
    assert traces[0].actions == traces[-1].actions
