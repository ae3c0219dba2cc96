"""Episodes judged lane by lane are those that are judged in one process."""

from __future__ import annotations

import functools
from contextlib import closing
from typing import Any

import gymnasium as gym
import pytest
import torch

from gymnast.config.schema import PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.lanes import LanePool
from gymnast.errors import EnvError
from gymnast.evaluation import evaluate as evaluating
from gymnast.evaluation.evaluate import Evaluation, evaluate
from gymnast.policies.actor_critic import ActorCritic

MAKE = functools.partial(gym.make, "CartPole-v1", max_episode_steps=60)
SEEDS = list(range(7))


def lanes() -> LanePool:
    """Seven envs over two workers: lanes of two, one, two and two."""
    return LanePool(functools.partial(InProcessVector, MAKE), 7, n_workers=2, timeout=20.0)


def policy_for(envs: Any) -> ActorCritic:
    """One whose episodes have different lengths."""
    generator = torch.Generator().manual_seed(3)
    return ActorCritic(PolicyConfig(hidden=[16]), envs.observation_space, envs.action_space, generator=generator)


def episodes(evaluation: Evaluation) -> list[tuple[float, int]]:
    """In no order."""
    return sorted(zip(evaluation.returns, evaluation.lengths, strict=True))


@pytest.mark.parametrize("count", [3, 7, 17])
def test_greedy_episodes_are_the_same(count: int) -> None:
    """Fewer episodes than slots, as many, and more: who is through rests, whoever shares its lane."""
    heard: list[int] = []
    with closing(InProcessVector(MAKE, 7)) as reference, closing(lanes()) as envs:
        policy = policy_for(envs)
        for _ in range(2):  # nobody still rests in the second evaluation
            judged = evaluate(policy, envs, count, SEEDS, on_episode=heard.append)
            assert episodes(judged) == episodes(evaluate(policy, reference, count, SEEDS))
    assert heard == 2 * list(range(1, count + 1))
    assert len(set(judged.lengths)) > 1


def test_sampled_episodes_do_not_depend_on_who_comes_first() -> None:
    with closing(lanes()) as envs:
        policy = policy_for(envs)
        first, second = (evaluate(policy, envs, 20, SEEDS, deterministic=False) for _ in range(2))
    assert (first.returns, first.lengths) == (second.returns, second.lengths)
    assert len(set(first.lengths)) > 3


def test_an_episode_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "MAX_EPISODE_STEPS", 5)
    with closing(lanes()) as envs, pytest.raises(EnvError, match=r"does not end.*env\.time_limit"):
        evaluate(policy_for(envs), envs, 7, SEEDS)
