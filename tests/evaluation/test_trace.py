"""EpisodeTrace: everything about one episode, by the same functions that train."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.base import coefficients
from gymnast.algorithms.credit import Credit
from gymnast.config.load import validate
from gymnast.config.schedule import Clock
from gymnast.config.schema import RunConfig
from gymnast.envs.make import make_envs
from gymnast.errors import EnvError
from gymnast.evaluation import trace as module
from gymnast.evaluation.trace import EpisodeTrace, record_episode
from gymnast.policies.actor_critic import ActorCritic

GAMMA, LAMBDA = 0.9, 0.8
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"id": "ppo", "gamma": GAMMA, "gae_lambda": LAMBDA},
    "reinforce": {"id": "reinforce", "gamma": GAMMA, "baseline": "none"},
}


def make(env: dict[str, Any], algorithm: str = "ppo", **policy: Any) -> tuple[ActorCritic, RunConfig]:
    """A fresh policy that is more decided than usual, and its config."""
    data = {
        "env": env,
        "policy": {"hidden": [16], **policy},
        "algo": ALGORITHMS[algorithm],
        "train": {"env_steps": 100},
    }
    config = validate(data, {})
    envs = make_envs(config.env, 1)
    network = ActorCritic(config.policy, envs.observation_space, envs.action_space, critic=algorithm != "reinforce")
    envs.close()
    with torch.no_grad():
        network.actor.layers[-1].weight.mul_(100.0)
    return network, config


def record(env: dict[str, Any], algorithm: str = "ppo", seed: int = 3, **settings: Any) -> tuple[EpisodeTrace, Any]:
    """One episode of a fresh policy."""
    policy, config = make(env, algorithm, **settings.pop("policy", {}))
    credit = Credit(make_algorithm(config.algo, 1), coefficients(config.algo, Clock(0, 0, 1.0)))
    return record_episode(policy, config.env, seed=seed, credit=credit, **settings), policy


ENVS: dict[str, dict[str, Any]] = {
    "CartPole": {"id": "CartPole-v1"},
    "Pendulum": {"id": "Pendulum-v1", "time_limit": 25},
    "FrozenLake": {"id": "FrozenLake-v1"},
    "MultiDiscrete": {"id": "MultiIdentity-v0"},
    "Dict": {"id": "DictIdentity-v0"},
    "workers": {"id": "Walk-v0", "vectorization": "workers"},
}


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_one_entry_per_step(env: str, deterministic: bool) -> None:
    """Observations and values have one more, for the state the episode ended in."""
    trace, _ = record(ENVS[env], deterministic=deterministic)
    steps = len(trace)
    assert steps >= 1
    assert len(trace.actions) == len(trace.executed) == len(trace.rewards) == steps
    assert len(trace.observations) == len(trace.values) == steps + 1
    assert trace.returns is not None
    assert trace.advantages is not None
    assert trace.returns.shape == trace.advantages.shape == (steps,)
    assert trace.probabilities is None or len(trace.probabilities) == steps
    assert trace.frames == []
    assert trace.ret == pytest.approx(sum(trace.rewards), rel=1e-6)


def test_same_seed_same_episode() -> None:
    """Sampled episodes too."""
    first, second, other = (record(ENVS["Pendulum"], seed=seed, deterministic=False)[0] for seed in (3, 3, 4))
    assert first.actions == second.actions
    assert first.rewards == second.rewards
    assert first.actions != other.actions


@pytest.mark.parametrize("env", ["CartPole", "Pendulum"])
def test_advantages_are_those_of_training(env: str) -> None:
    """The recursion written out, bootstrapped from the end where the episode was cut off (Pendulum) and not (CartPole)."""
    trace, _ = record(ENVS[env])
    assert trace.terminated == (env == "CartPole")
    values = list(trace.values)
    if trace.terminated:
        values[-1] = 0.0
    expected, advantage = np.zeros(len(trace)), 0.0
    for t in reversed(range(len(trace))):
        advantage = trace.rewards[t] + GAMMA * values[t + 1] - values[t] + GAMMA * LAMBDA * advantage
        expected[t] = advantage
    np.testing.assert_allclose(trace.advantages, expected, rtol=1e-4, atol=1e-5)
    powers = GAMMA ** np.arange(len(trace))
    returns = [float(np.dot(powers[: len(trace) - t], trace.rewards[t:])) for t in range(len(trace))]
    np.testing.assert_allclose(trace.returns, returns, rtol=1e-4)


def test_values_and_observations_belong_together() -> None:
    """values[t] is what the critic says about observations[t], the last one included."""
    trace, policy = record(ENVS["Pendulum"])
    batch = torch.from_numpy(np.stack(trace.observations))
    with torch.inference_mode():
        np.testing.assert_allclose(policy.values(batch).numpy(), trace.values, rtol=1e-5, atol=1e-6)
    assert len({tuple(obs.tolist()) for obs in trace.observations}) == len(trace) + 1


def test_probabilities_are_the_policys() -> None:
    """They sum to one, the greedy action is the likeliest, and they follow from the observation."""
    trace, policy = record(ENVS["CartPole"])
    assert trace.probabilities is not None
    probabilities = np.stack(trace.probabilities)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, rtol=1e-6)
    assert trace.actions == probabilities.argmax(1).tolist()
    with torch.inference_mode():
        params = policy.act(torch.from_numpy(np.stack(trace.observations[:-1])), None)["params"]
    np.testing.assert_allclose(probabilities, torch.softmax(params, -1).numpy(), rtol=1e-5)
    assert record(ENVS["Pendulum"])[0].probabilities is None


def test_masked_actions_have_no_probability() -> None:
    """The forbidden action is never taken and has probability 0."""
    trace, _ = record({"id": "MaskedIdentity-v0"}, deterministic=False)
    assert trace.probabilities is not None
    for obs, probabilities, action in zip(trace.observations, trace.probabilities, trace.actions, strict=False):
        assert probabilities[int(obs)] == 0.0
        assert (probabilities > 0).sum() == 3
        assert action != int(obs)


def test_executed_actions_are_clipped_chosen_ones_are_not() -> None:
    """Pendulum's own reward proves which of the two it was given."""
    trace, _ = record(ENVS["Pendulum"], deterministic=False, policy={"log_std_init": 1.5})
    chosen, given = np.array(trace.actions), np.array(trace.executed)
    np.testing.assert_allclose(given, np.clip(chosen, -2.0, 2.0))
    assert (np.abs(chosen) > 2.0).any()
    assert (np.abs(chosen) < 2.0).any()
    cos, sin, speed = np.stack(trace.observations[:-1]).T.astype(np.float64)
    angle = np.arctan2(sin, cos)
    np.testing.assert_allclose(
        trace.rewards, -(angle**2 + 0.1 * speed**2 + 0.001 * given[:, 0] ** 2), rtol=1e-4, atol=1e-5
    )


def test_executed_actions_count_from_the_spaces_start() -> None:
    """The env's reward is 1 exactly where the executed pair is the state's."""
    trace, _ = record(ENVS["MultiDiscrete"], deterministic=False)
    executed = np.array(trace.executed)
    assert set(executed[:, 1]) <= {5, 6}
    right = (executed == np.add(np.stack(trace.observations[:-1]), (0, 5))).all(1)
    assert trace.rewards == right.astype(float).tolist()


def test_without_a_baseline_the_advantage_is_the_return() -> None:
    """REINFORCE without any has nothing to subtract."""
    trace, _ = record(ENVS["CartPole"], "reinforce")
    assert trace.returns is not None
    assert set(trace.values) == {0.0}
    np.testing.assert_array_equal(trace.advantages, trace.returns)


def test_a_lost_life_cuts_the_advantages() -> None:
    """`terminated` without an end: nothing that follows counts for what came before, as in training."""
    trace, _ = record({"id": "Lives-v0"})
    assert len(trace) == 9
    values = np.array(trace.values)
    expected, advantage = np.zeros(9), 0.0
    for t in reversed(range(9)):
        over = t % 3 == 2  # a life is lost, or the game
        advantage = 1.0 + GAMMA * values[t + 1] * (not over) - values[t] + GAMMA * LAMBDA * advantage * (not over)
        expected[t] = advantage
    np.testing.assert_allclose(trace.advantages, expected, rtol=1e-4, atol=1e-5)


def test_the_return_is_the_envs_own() -> None:
    """A reward the learner sees scaled is reported unscaled."""
    scaled = {**ENVS["CartPole"], "wrappers": [{"id": "reward_scale", "factor": 0.5}]}
    trace, _ = record(scaled)
    assert trace.rewards == [0.5] * len(trace)
    assert trace.ret == len(trace)


def test_frames_of_every_state() -> None:
    """One picture before each step and one of the state the episode ended in, at the env's own speed."""
    trace, _ = record({"id": "Pictures-v0"}, frames=True)
    assert len(trace) == 9
    assert [int(frame[0, 0, 0]) for frame in trace.frames] == [20 * i for i in range(10)]
    assert trace.fps == 12


def test_the_last_picture_of_a_cut_off_episode() -> None:
    """A time limit ends it outside the env, which has drawn nothing but where it is."""
    trace, _ = record({"id": "Pictures-v0", "time_limit": 4}, frames=True)
    assert not trace.terminated
    assert [int(frame[0, 0, 0]) for frame in trace.frames] == [20 * i for i in range(5)]


def test_a_real_env_shows_where_it_ended() -> None:
    """FrozenLake's last picture is the hole, which only the step that ends the episode draws."""
    policy, config = make({"id": "FrozenLake-v1"})
    trace = record_episode(policy, config.env, seed=5, deterministic=False, frames=True)
    assert trace.terminated
    env = gym.make("FrozenLake-v1", render_mode="rgb_array")
    env.reset(seed=5)
    expected = [env.render()]
    for action in trace.executed:
        env.step(action)
        expected.append(env.render())
    env.close()
    assert len(trace.frames) == len(trace) + 1
    np.testing.assert_array_equal(trace.frames, expected)


def test_an_episode_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that names the setting."""
    monkeypatch.setattr(module, "MAX_EPISODE_STEPS", 50)
    policy, config = make({"id": "CliffWalking-v1"})
    with torch.no_grad():
        policy.actor.layers[-1].bias.copy_(torch.tensor([1e6, 0.0, 0.0, 0.0]))
    with pytest.raises(EnvError, match=r"env\.time_limit"):
        record_episode(policy, config.env, seed=0)
