"""Advantages and returns against numbers worked out by hand, the definition, and Stable-Baselines3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymnast.rollout.returns import RewardScaler, discounted_returns, gae


def column(*values: float) -> np.ndarray:
    """One env's values as [T, 1]."""
    return np.array(values, np.float32)[:, None]


def flags(*values: int) -> np.ndarray:
    return np.array(values, np.bool_)[:, None]


def random_data(seed: int, n_steps: int = 50, n_envs: int = 6):
    """Rewards, values and ends; `next_value` is the next row's, and something else where an episode was cut off."""
    random = np.random.default_rng(seed)
    reward, value, final_value = random.normal(size=(3, n_steps, n_envs)).astype(np.float32)
    last_value = random.normal(size=n_envs).astype(np.float32)
    terminated, truncated = random.random((2, n_steps, n_envs)) < 0.1
    next_value = np.concatenate((value[1:], last_value[None]))
    next_value = np.where(truncated & ~terminated, final_value, next_value)
    return reward, value, next_value, terminated, truncated, last_value


def by_definition(reward, value, next_value, terminated, truncated, gamma, lam):
    """A_t = Σ_k (γλ)^k δ_{t+k} up to the end of the episode, in float64, one sum per sample."""
    advantage = np.zeros(reward.shape)
    for t, n in np.ndindex(reward.shape):
        weight = 1.0
        for s in range(t, len(reward)):
            future = 0.0 if terminated[s, n] else float(next_value[s, n])
            advantage[t, n] += weight * (float(reward[s, n]) + gamma * future - float(value[s, n]))
            weight *= gamma * lam
            if terminated[s, n] or truncated[s, n]:
                break
    return advantage


def test_boundary_by_hand():
    advantage, target = gae(
        column(0.1, 0.2, 0.3), column(1, 2, 3), column(2, 3, 4), flags(0, 1, 0), flags(0, 0, 0), 0.97, 0.5
    )
    np.testing.assert_allclose(advantage[:, 0], [0.167, -1.8, 1.18], atol=1e-6)
    np.testing.assert_allclose(target[:, 0], [1.167, 0.2, 4.18], atol=1e-6)


def test_truncation_bootstraps_from_the_final_value_and_cuts_the_trace():
    # Two episodes: the first is cut off at t=1 in a state worth 10; the second must not leak into it.
    arguments = (column(1, 1, 100), column(0, 0, 0), column(0, 10, 7))
    advantage, _ = gae(*arguments, flags(0, 0, 0), flags(0, 1, 0), 0.5, 1.0)
    np.testing.assert_allclose(advantage[:, 0], [1 + 0.5 * 6, 1 + 0.5 * 10, 100 + 0.5 * 7])
    terminated, _ = gae(*arguments, flags(0, 1, 0), flags(0, 0, 0), 0.5, 1.0)
    np.testing.assert_allclose(terminated[:, 0], [1 + 0.5 * 1, 1, 100 + 0.5 * 7])


def test_termination_wins_over_truncation():
    advantage, _ = gae(column(1.0), column(0.0), column(9.0), flags(1), flags(1), 0.9, 0.9)
    assert advantage[0, 0] == 1.0


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95, 1.0])
def test_equals_the_definition(gamma, lam):
    *data, _ = random_data(seed=3)
    advantage, target = gae(*data, gamma, lam)
    expected = by_definition(*data, gamma, lam)
    np.testing.assert_allclose(advantage, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(target, expected + data[1], rtol=1e-5, atol=1e-5)


def test_limits():
    reward, value, next_value, terminated, truncated, last = random_data(seed=4)
    never = np.zeros_like(terminated)
    rows = np.concatenate((value[1:], last[None]))
    # γ = λ = 1 and no reward: every target is the bootstrap.
    _, target = gae(np.zeros_like(reward), value, rows, never, never, 1.0, 1.0)
    np.testing.assert_allclose(target, np.broadcast_to(last, target.shape), atol=2e-5)
    # γ = 0: the target is the reward.
    _, target = gae(reward, value, next_value, terminated, truncated, 0.0, 0.95)
    np.testing.assert_allclose(target, reward, atol=1e-6)
    # λ = 0: one-step temporal difference.
    _, target = gae(reward, value, next_value, terminated, truncated, 0.9, 0.0)
    np.testing.assert_allclose(target, reward + 0.9 * next_value * ~terminated, atol=1e-6)
    # λ = 1: Monte-Carlo return plus the discounted bootstrap of where the episode was left.
    _, target = gae(reward, value, next_value, terminated, truncated, 0.9, 1.0)
    expected = np.zeros(reward.shape)
    running = last.astype(np.float64)
    for t in reversed(range(len(reward))):
        left = np.where(terminated[t], 0.0, np.where(truncated[t], next_value[t], running))
        running = expected[t] = reward[t] + 0.9 * left
    np.testing.assert_allclose(target, expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_equals_stable_baselines3(seed):
    from stable_baselines3.common.buffers import RolloutBuffer

    reward, value, next_value, terminated, truncated, last_value = random_data(seed)
    n_steps, n_envs = reward.shape
    gamma, lam = 0.97, 0.9
    box = spaces.Box(-1, 1, (1,))
    buffer = RolloutBuffer(n_steps, box, box, gae_lambda=lam, gamma=gamma, n_envs=n_envs)
    done = terminated | truncated
    # SB3 knows one kind of end; its collector adds the value of the final observation to the reward where it was cut off.
    cut = truncated & ~terminated
    buffer.rewards[:] = reward + cut * np.float32(gamma) * next_value
    buffer.values[:] = value
    buffer.episode_starts[1:] = done[:-1]
    buffer.compute_returns_and_advantage(torch.from_numpy(last_value), done[-1])
    assert cut.any() and (terminated & ~truncated).any()
    advantage, target = gae(reward, value, next_value, terminated, truncated, gamma, lam)
    np.testing.assert_allclose(advantage, buffer.advantages, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(target, buffer.returns, rtol=1e-6, atol=1e-6)


def test_gae_leaves_its_inputs_alone():
    *data, _ = random_data(seed=5)
    before = [array.copy() for array in data]
    gae(*data, 0.99, 0.95)
    discounted_returns(data[0], data[3], 0.9)
    for array, copy in zip(data, before):
        np.testing.assert_array_equal(array, copy)


def test_discounted_returns():
    reward = np.array([[1, 1], [2, 2], [4, 4], [8, 8]], np.float32)
    ended = np.array([[0, 0], [1, 0], [0, 0], [0, 1]], np.bool_)
    expected = [[1 + 1, 1 + 1 + 1 + 1], [2, 2 + 2 + 2], [4 + 4, 4 + 4], [8, 8]]
    np.testing.assert_allclose(discounted_returns(reward, ended, 0.5), expected)
    np.testing.assert_array_equal(discounted_returns(reward, ended, 0.0), reward)


def discounted_sums(rewards: np.ndarray, ended: np.ndarray, gamma: float) -> np.ndarray:
    """The running discounted sum of every env after every step, zero at each episode's start."""
    sums = np.zeros(rewards.shape)
    running = np.zeros(rewards.shape[1])
    for t in range(len(rewards)):
        running = running * gamma + rewards[t]
        sums[t] = running
        running = np.where(ended[t], 0.0, running)
    return sums


def test_reward_scaler_equals_numpy_on_the_concatenation():
    random = np.random.default_rng(0)
    rewards = random.uniform(1, 9, size=(3, 40, 4)).astype(np.float32)
    ended = random.random((3, 40, 4)) < 0.1
    scaler = RewardScaler(4, clip=10.0)
    for i in range(3):
        scaled = scaler(rewards[i], ended[i], 0.9)
        seen = discounted_sums(np.concatenate(rewards[: i + 1]), np.concatenate(ended[: i + 1]), 0.9)
        np.testing.assert_allclose(scaler.std, seen.std(), rtol=1e-9)
        np.testing.assert_allclose(scaled, rewards[i] / seen.std(), rtol=1e-6)
    assert (scaled > 0).all()  # no mean is subtracted


def test_reward_scaler_clips_and_keeps_the_sign():
    reward = np.zeros((100, 1), np.float32)
    reward[-1] = -1000.0
    scaled = RewardScaler(1, clip=10.0)(reward, np.ones_like(reward, np.bool_), 0.99)
    # The std of the sums is 99.5 (one of a hundred), so the bound is met: 1000 / 99.5 > 10.
    assert scaled[-1, 0] == -10.0 and (scaled[:-1] == 0).all()
    assert RewardScaler(1, clip=20.0)(reward, np.ones_like(reward, np.bool_), 0.99)[-1, 0] == pytest.approx(
        -10.0504, 1e-4
    )


def test_reward_scaler_of_a_constant_reward_is_finite():
    scaled = RewardScaler(2, clip=10.0)(np.zeros((5, 2), np.float32), np.ones((5, 2), np.bool_), 0.9)
    assert (scaled == 0).all()


def test_reward_scaler_resumes_to_the_bit():
    random = np.random.default_rng(1)
    rewards = random.normal(size=(2, 30, 3)).astype(np.float32)
    ended = random.random((2, 30, 3)) < 0.1
    whole = RewardScaler(3, 10.0)
    whole(rewards[0], ended[0], 0.95)
    saved = whole.state()
    expected = whole(rewards[1], ended[1], 0.95)
    resumed = RewardScaler(3, 10.0)
    resumed.load_state(saved)
    np.testing.assert_array_equal(resumed(rewards[1], ended[1], 0.95), expected)
    assert resumed.std == whole.std
    fresh = RewardScaler(3, 10.0)
    assert not np.array_equal(fresh(rewards[1], ended[1], 0.95), expected)


def test_reward_scaler_forgets_running_sums_when_episodes_start_anew():
    reward = np.full((4, 1), 2.0, np.float32)
    never = np.zeros((4, 1), np.bool_)
    scaler = RewardScaler(1, 10.0)
    scaler(reward, never, 1.0)
    scaler.start_episodes()
    scaler(reward, never, 1.0)
    assert scaler.std == pytest.approx(np.std([2, 4, 6, 8, 2, 4, 6, 8]))
