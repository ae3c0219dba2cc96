"""The vectorised CartPole is Gymnasium's, to the bit."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest

from gymnast.config.schema import EnvConfig
from gymnast.envs.families.classic.cartpole import CartPoleVector
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.errors import EnvError

N_ENVS = 5
SEEDS = [11, 0, 2**31 - 1, 5, 5]


def single(limit: int, **kwargs):
    return gym.make("CartPole-v1", max_episode_steps=limit, disable_env_checker=True, **kwargs)


def compare(ours, theirs, actions) -> list:
    """Step both with the same actions; every number must be the same. Returns the ended episodes."""
    rows = ours.new_row(), theirs.new_row()
    ours.reset(SEEDS[: ours.n_envs], rows[0])
    theirs.reset(SEEDS[: ours.n_envs], rows[1])
    assert rows[0].obs.dtype == rows[1].obs.dtype == np.float32
    np.testing.assert_array_equal(rows[0].obs, rows[1].obs)
    episodes = []
    for action in actions:
        found, expected = ours.step(action, rows[0]), theirs.step(action, rows[1])
        for name in ("obs", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(rows[0], name), getattr(rows[1], name), err_msg=name)
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            assert (a.index, a.ret, a.length, a.terminated) == (b.index, b.ret, b.length, b.terminated)
            np.testing.assert_array_equal(a.final_obs, b.final_obs)
        episodes += [(episode.terminated, bool(rows[0].truncated[episode.index])) for episode in found]
    return episodes


def random_actions(steps: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (steps, N_ENVS))


def test_equals_gymnasium_over_3000_random_steps():
    episodes = compare(CartPoleVector(N_ENVS), InProcessVector(lambda: single(500), N_ENVS), random_actions(3000))
    assert len(episodes) > 500 and all(terminated for terminated, _ in episodes)


class Balancing:
    """Actions that keep the pole up, so that the time limit is reached."""

    def __init__(self, envs, steps):
        self.envs, self.steps = envs, steps

    def __iter__(self):
        for _ in range(self.steps):
            _, _, angle, speed = self.envs._state
            yield (angle + 0.3 * speed > 0).astype(np.int64)


def test_equals_gymnasium_up_to_the_time_limit():
    ours = CartPoleVector(N_ENVS)
    episodes = compare(ours, InProcessVector(lambda: single(500), N_ENVS), Balancing(ours, 1100))
    assert (False, True) in episodes


@pytest.mark.parametrize("limit", [1, 12, 25])
def test_other_time_limits(limit):
    ours = CartPoleVector(N_ENVS, max_episode_steps=limit)
    episodes = compare(ours, InProcessVector(lambda: single(limit), N_ENVS), random_actions(1500))
    assert (False, True) in episodes
    if limit > 1:
        assert (True, False) in episodes and (True, True) in episodes  # fell in the very step of the limit


@pytest.mark.parametrize("limit", [20, 500])
def test_rewards_of_sutton_and_barto(limit):
    ours = CartPoleVector(N_ENVS, max_episode_steps=limit, sutton_barto_reward=True)
    theirs = InProcessVector(lambda: single(limit, sutton_barto_reward=True), N_ENVS)
    assert (True, False) in compare(ours, theirs, random_actions(1000))


def test_final_observations_are_copies():
    envs = CartPoleVector(3, max_episode_steps=4)
    row = envs.new_row()
    envs.reset([1, 2, 3], row)
    kept = []
    for _ in range(20):
        kept += [(e.final_obs, e.final_obs.copy()) for e in envs.step(np.ones(3, np.int64), row)]
    assert len(kept) == 15 and all(np.array_equal(held, copy) for held, copy in kept)


def test_a_saved_state_goes_on_the_same():
    actions = random_actions(400)
    envs = CartPoleVector(N_ENVS, max_episode_steps=30)
    row = envs.new_row()
    envs.reset(SEEDS, row)
    for action in actions[:200]:
        envs.step(action, row)
    state = envs.save_state()
    json.dumps(
        {**state, "state": state["state"].tolist(), "steps": state["steps"].tolist()}
    )  # JSON and arrays, no more
    expected = play(envs, actions[200:])
    other = CartPoleVector(N_ENVS, max_episode_steps=30)
    other.reset([9, 8, 7, 6, 5], other.new_row())
    other.load_state(state)
    found = play(other, actions[200:])
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)
    # The state is a copy: playing on did not change it.
    again = CartPoleVector(N_ENVS, max_episode_steps=30)
    again.load_state(state)
    np.testing.assert_array_equal(play(again, actions[200:])[0], expected[0])


def test_a_state_of_another_number_of_envs_is_refused():
    envs = CartPoleVector(4)
    envs.reset([1, 2, 3, 4], envs.new_row())
    with pytest.raises(EnvError, match="saved state is of 4 envs, this run has 3"):
        CartPoleVector(3).load_state(envs.save_state())


def play(envs, actions):
    row = envs.new_row()
    seen = [[], [], [], []]
    for action in actions:
        ended = envs.step(action, row)
        for log, value in zip(seen, (row.obs, row.terminated, row.truncated, [len(ended), sum(e.ret for e in ended)])):
            log.append(np.array(value))
    return [np.stack(log) for log in seen]


def test_slots_are_seeded_by_themselves():
    rows = []
    for seeds in ([1, 2, 3], [3, 2, 1], [1, 2, 4]):
        envs = CartPoleVector(3)
        rows.append(envs.new_row())
        envs.reset(seeds, rows[-1])
    np.testing.assert_array_equal(rows[0].obs, rows[1].obs[::-1])
    np.testing.assert_array_equal(rows[0].obs[:2], rows[2].obs[:2])
    assert not np.array_equal(rows[0].obs[2], rows[2].obs[2])
    with pytest.raises(ValueError, match="3 envs need 3 seeds, got 2"):
        CartPoleVector(3).reset([1, 2], rows[0])


def test_the_native_form_is_used_where_it_is_the_same_env():
    def inner(**config):
        return make_envs(EnvConfig(id="CartPole-v1", **config), 2)

    assert isinstance(inner(), CartPoleVector)
    assert isinstance(inner(kwargs={"sutton_barto_reward": True}), CartPoleVector)
    assert inner(time_limit=7)._limit == 7
    assert isinstance(inner(vectorization="inprocess"), InProcessVector)
