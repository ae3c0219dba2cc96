"""How much is played: whole episodes or steps per slot, next to a plain loop over Gymnasium's envs."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch

from gymnast.config.load import resolve
from gymnast.config.plan import eval_envs
from gymnast.envs.make import make_envs
from gymnast.evaluation.evaluate import evaluate
from gymnast.evaluation.quota import Quota, quotas
from gymnast.policies.actor_critic import ActorCritic


@pytest.mark.parametrize("kind", ["native", "inprocess"])
def test_each_slot_plays_its_steps_and_the_episode_to_its_end(kind: str) -> None:
    """The same episodes as single envs of Gymnasium played one by one."""
    config = resolve("CartPole-v1:ppo", [f"vectorization={kind}"]).config
    n_envs, steps, seeds = 3, 100, [11, 12, 13]
    envs = make_envs(config.env, n_envs)
    policy = ActorCritic(config.policy, envs.observation_space, envs.action_space)
    heard: list[int] = []
    found = evaluate(policy, envs, 100, seeds, steps=steps, on_episode=heard.append)
    lengths = sorted(length for seed, share in zip(seeds, (34, 33, 33)) for length in alone(policy, seed, share))
    assert sorted(found.lengths) == lengths
    assert heard[-1] == sum(found.lengths) >= steps
    envs.close()


def alone(policy: ActorCritic, seed: int, share: int) -> list[int]:
    """Lengths of the episodes of one env until it has played its share."""
    env = gym.make("CartPole-v1")
    found: list[int] = []
    obs, _ = env.reset(seed=seed)
    length = 0
    while sum(found) < share:
        with torch.no_grad():
            action = policy.act(torch.from_numpy(np.asarray(obs))[None], None)["action"]
        obs, _, terminated, truncated, _ = env.step(int(action[0]))
        length += 1
        if terminated or truncated:
            found.append(length)
            obs, _ = env.reset()
            length = 0
    return found


def test_quotas() -> None:
    assert quotas(7, 3).tolist() == [3, 2, 2] and quotas(2, 3).tolist() == [1, 1, 0]
    by_episodes, by_steps = Quota(2, 3), Quota(2, 3, steps=20)
    assert [by_episodes.take(1, 9), by_episodes.take(1, 9), by_episodes.played] == [True, False, 1]
    assert [by_steps.take(0, 9), by_steps.rests(0), by_steps.take(0, 9), by_steps.rests(0)] == [True, False, True, True]
    assert by_steps.open.tolist() == [False, True] and by_steps.played == 18


def test_few_slots_where_episodes_are_long() -> None:
    """Each finishes an episode: twenty slots of 500 steps would be ten thousand steps."""
    for steps, slots in ((400, 1), (3000, 6), (100_000, 20)):
        assert eval_envs(resolve("CartPole-v1:ppo", [f"eval.steps={steps}"]).config, native=False) == slots
