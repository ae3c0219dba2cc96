"""Noise on observations and remembered actions: each against an independent loop, across ends of episodes."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counter_env import CounterEnv, DictCounterEnv, WalkEnv
from gymnasium import spaces
from wrapper_envs import ImageEnv, LogEnv

from gymnast.envs.actions import random_actions
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.wrappers.generators import seeded
from gymnast.envs.wrappers.noise import OUTSIDE, ObservationNoise
from gymnast.envs.wrappers.stacking import ActionStack
from gymnast.errors import ConfigError

N_ENVS, STEPS, SEEDS = 3, 80, [3, 0, 11]


def run(envs, n_actions=None):
    """Rows, final observations and actions."""
    row, random = envs.new_row(), np.random.default_rng(1)
    envs.reset(SEEDS, row)
    steps = [(None, own(row.obs), {})]
    for _ in range(STEPS):
        actions = random_actions(envs.action_space, N_ENVS, random)
        ended = {episode.index: episode for episode in envs.step(actions, row)}
        steps.append((actions, own(row.obs), ended))
    assert sum(len(ended) for *_, ended in steps) > 3
    return steps


def own(obs):
    return {key: array.copy() for key, array in obs.items()} if isinstance(obs, dict) else obs.copy()


# ---- noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make_env", [CounterEnv, WalkEnv, ImageEnv])
def test_every_slot_has_noise_of_its_own(make_env):
    bare, noisy = (
        run(InProcessVector(make_env, N_ENVS)),
        run(ObservationNoise(InProcessVector(make_env, N_ENVS), std=3.0)),
    )
    draws = [seeded(seed, OUTSIDE) for seed in SEEDS]
    space = make_env().observation_space

    def disturbed(obs, i):
        obs = np.asarray(obs, space.dtype if space.dtype != np.float64 else np.float32)
        seen = np.clip(obs + draws[i].normal(0, 3.0, space.shape), space.low, space.high)
        return (np.rint(seen) if space.dtype == np.uint8 else seen).astype(obs.dtype)

    for (_, obs, ended), (_, found, found_ended) in zip(bare, noisy):
        for i in range(N_ENVS):
            if i in ended:
                np.testing.assert_array_equal(found_ended[i].final_obs, disturbed(ended[i].final_obs, i))
                assert found_ended[i].ret == ended[i].ret
            np.testing.assert_array_equal(found[i], disturbed(obs[i], i))


def test_two_noises_differ():
    envs = ObservationNoise(ObservationNoise(InProcessVector(CounterEnv, 1), std=1.0), std=1.0)
    row = envs.new_row()
    envs.reset([0], row)
    assert envs._generators.each[0].random() != envs.inner._generators.each[0].random()


def test_noise_needs_numbers():
    with pytest.raises(ConfigError, match="'observation_noise' needs Box observations, this env has Discrete"):
        ObservationNoise(InProcessVector(numbered, 1), std=1.0)


def numbered():
    return gym.wrappers.TransformObservation(CounterEnv(), lambda obs: abs(int(obs[1])) % 3, spaces.Discrete(3))


# ---- actions ---------------------------------------------------------------------------------------------------------


def one_hot(space, action):
    if isinstance(space, spaces.Discrete):
        return np.eye(space.n)[action]
    if isinstance(space, spaces.MultiDiscrete):
        return np.concatenate([np.eye(n)[a] for n, a in zip(space.nvec, action)])
    if isinstance(space, spaces.Box):
        return np.clip(action, space.low, space.high).ravel()
    return np.asarray(action, float)


ACTIONS = {
    "discrete": spaces.Discrete(4),
    "discrete that starts elsewhere": spaces.Discrete(4, start=3),
    "multi_discrete": spaces.MultiDiscrete([2, 3], start=[0, 5]),
    "binary": spaces.MultiBinary(3),
    "box": spaces.Box(-0.5, 0.25, (2,), np.float32),
}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("kind", ACTIONS)
@pytest.mark.parametrize("images", [False, True])
def test_the_last_actions_stand_beside_the_observation(kind, size, images):
    space = ACTIONS[kind]

    def make():
        return InProcessVector(lambda: LogEnv(space, images=images), N_ENVS)

    bare, stacked = run(make()), run(ActionStack(make(), size))
    width = len(one_hot(space, space.sample() * 0))
    history = [[np.zeros(width)] * size for _ in range(N_ENVS)]

    def expected(obs, i):
        actions = np.concatenate(history[i][-size:]).astype(np.float32)
        return {"observation": obs, "actions": actions} if images else np.concatenate((obs, actions))

    for (actions, obs, ended), (same_actions, found, found_ended) in zip(bare, stacked):
        np.testing.assert_array_equal(same_actions, actions) if actions is not None else None
        for i in range(N_ENVS):
            if actions is not None:
                history[i].append(one_hot(space, actions[i]))
            if i in ended:
                np.testing.assert_equal(found_ended[i].final_obs, expected(ended[i].final_obs, i))
                history[i] = [np.zeros(width)] * size
            one = {key: array[i] for key, array in found.items()} if images else found[i]
            np.testing.assert_equal(one, expected(obs[i], i))
    envs = ActionStack(make(), size)
    row = envs.new_row()
    envs.reset(SEEDS, row)
    one = {key: array[0] for key, array in row.obs.items()} if images else row.obs[0]
    assert envs.observation_space.contains(one)


def test_a_dict_gets_one_more_part():
    envs = ActionStack(InProcessVector(DictCounterEnv, N_ENVS), 2)
    inner = InProcessVector(DictCounterEnv, 1).observation_space.spaces
    assert envs.observation_space == spaces.Dict({**inner, "actions": spaces.Box(0, 1, (8,))})
    for _, obs, ended in run(envs):
        assert obs["actions"].shape == (N_ENVS, 8)
        assert all(episode.final_obs["actions"].any() for episode in ended.values())
        assert all(not obs["actions"][i].any() for i in ended)


def test_actions_with_parts_are_refused():
    parts = spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,))))
    with pytest.raises(ConfigError, match="'action_stack' needs actions without parts, this env has Tuple"):
        ActionStack(InProcessVector(lambda: LogEnv(parts), 1), 2)
