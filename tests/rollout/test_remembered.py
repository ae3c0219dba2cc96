"""What a policy remembers: within an episode, over the end of a rollout, into a cut-off episode's value, and never longer."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from scripted_vector import ScriptedVector, Step
from small_policies import Summing

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.algorithms import A2CConfig, PPOConfig
from gymnast.config.schema import PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.vector import VectorEnv
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import column_order
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import StepCollector
from gymnast.timing import StageTimer
from gymnast.training.update import Learner, update


def collector_of(envs: VectorEnv, n_steps: int, seed: int = 0) -> StepCollector:
    """Fills rollouts of a policy whose value is the sum of an episode's observations."""
    policy = Summing(PolicyConfig(), envs.observation_space, envs.action_space)
    return StepCollector(policy, envs, Rollout(n_steps, envs, policy), torch.Generator().manual_seed(seed))


def played(envs: VectorEnv, n_steps: int) -> Rollout:
    """The first rollout."""
    collector = collector_of(envs, n_steps)
    collector.start_episodes(list(range(envs.n_envs)))
    collector.collect(StageTimer())
    return collector.rollout


def cut(obs: float, final: float | None) -> Step:
    """An episode is cut off; the next one begins with `obs`."""
    return Step(obs, truncated=True, ended=True, final=final)


def test_a_cut_off_episode_is_bootstrapped_from_what_it_remembered() -> None:
    rollout = played(ScriptedVector([1], [[Step(2), cut(50, 70), Step(51), Step(52)]]), 4)
    assert rollout["value"][:, 0].tolist() == [1, 1 + 2, 50, 50 + 51, 50 + 51 + 52]
    assert rollout["state"][:, 0, 0].tolist() == [0, 1, 0, 50, 50 + 51]
    assert rollout["starts"][:, 0].tolist() == [True, False, True, False, False]
    assert rollout.next["value"][:, 0].tolist() == [1 + 2, 1 + 2 + 70, 50 + 51, 50 + 51 + 52]


def test_an_episode_that_was_over_is_forgotten() -> None:
    """And a lost life is no end: the same episode goes on."""
    script = [Step(2, terminated=True), Step(50, terminated=True, ended=True, final=70), Step(51)]
    rollout = played(ScriptedVector([1], [script]), 3)
    assert rollout["value"][:, 0].tolist() == [1, 1 + 2, 50, 50 + 51]
    assert rollout["starts"][:, 0].tolist() == [True, False, True, False]


def test_slots_do_not_remember_for_one_another() -> None:
    scripts = [
        [cut(10, 100), Step(11), cut(12, 101)],
        [Step(20), cut(21, 200), Step(22)],
        [cut(30, 300), Step(31, terminated=True, ended=True, final=301), cut(32, None)],
    ]
    rollout = played(ScriptedVector([1, 2, 3], scripts), 3)
    assert rollout["value"].tolist() == [[1, 2, 3], [10, 22, 30], [21, 21, 31], [12, 43, 32]]
    assert rollout.next["value"].tolist() == [[1 + 100, 22, 3 + 300], [21, 22 + 200, 31], [10 + 11 + 101, 43, 0]]


def test_an_episode_goes_on_in_the_next_rollout() -> None:
    """Also where the boundary was saved and another rollout takes it up."""
    script = [Step(float(i)) for i in range(2, 8)]
    envs = ScriptedVector([1], [script])
    collector = collector_of(envs, 3)
    collector.start_episodes([0])
    collector.collect(StageTimer())
    boundary, stood = collector.rollout.state(), envs.save_state()
    collector.rollout.carry_over()
    collector.collect(StageTimer())
    assert collector.rollout["value"][:, 0].tolist() == [10, 15, 21, 28]
    assert collector.rollout["starts"][:, 0].tolist() == [False] * 4
    envs.load_state(stood)
    other = collector_of(envs, 3, seed=1)
    other.rollout.load_state(boundary)
    other.rollout.carry_over()
    other.collect(StageTimer())
    for name in ("value", "state", "starts"):
        assert torch.equal(other.rollout[name], collector.rollout[name]), name


def test_an_episode_that_ends_with_the_rollout_is_not_carried_over() -> None:
    collector = collector_of(ScriptedVector([1], [[Step(2), cut(50, 70)]]), 2)
    collector.start_episodes([0])
    for _ in range(2):
        collector.collect(StageTimer())
        assert collector.rollout["starts"][:, 0].tolist() == [True, False, True]
        assert float(collector.rollout["state"][2]) == 0.0
        assert collector.rollout.next["value"][1, 0] == collector.rollout["value"][1, 0] + 70
        collector.rollout.carry_over()


def test_fresh_episodes_remember_nothing() -> None:
    """Envs that are reset between two rollouts begin anew, and the first step says so."""
    collector = collector_of(ScriptedVector([1, 1], [[Step(2), Step(3)]] * 2), 2)
    for _ in range(2):
        collector.start_episodes([0, 1])
        collector.collect(StageTimer())
        assert collector.rollout["value"][:, 0].tolist() == [1, 3, 6]
        assert collector.rollout["starts"].tolist() == [[True, True], [False, False], [False, False]]


# ---- learning from sequences -----------------------------------------------------------------------------------------


class Wandering(gym.Env):
    """Small random observations and ends of both kinds."""

    observation_space = spaces.Box(-1, 1, (3,))
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=3).astype(np.float32), {}

    def step(self, action):
        over, late = self.np_random.random(2) < 0.15
        return self.np_random.normal(size=3).astype(np.float32), float(action), bool(over), bool(late), {}


T, N = 12, 4


def wandered() -> tuple[Summing, Rollout]:
    """The second rollout: some episodes go on from the first one."""
    envs = InProcessVector(Wandering, N)
    collector = collector_of(envs, T)
    policy = collector._policy
    assert isinstance(policy, Summing)
    with torch.no_grad():
        policy.pace.fill_(0.8)
    collector.start_episodes(list(range(N)))
    collector.collect(StageTimer())
    collector.rollout.carry_over()
    collector.collect(StageTimer())
    starts = collector.rollout["starts"]
    assert not starts[0].all() and starts[1:].any()
    return policy, collector.rollout


def zeros() -> np.ndarray:
    return np.zeros((T, N), np.float32)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 6, 12])
def test_sequences_give_what_was_played(length: int) -> None:
    """Log-probabilities and values of every minibatch, computed again from what its sequences began with."""
    policy, rollout = wandered()
    batch = rollout.batch(advantage=zeros(), target=zeros())
    order = column_order(T, N, length, 3 * length, torch.Generator().manual_seed(0))
    for piece in order.pieces():
        minibatch = batch.select(piece, sequence=order.sequence)
        outputs, _ = policy.evaluate(minibatch.obs, minibatch["action"], minibatch.mask, minibatch.memory)
        torch.testing.assert_close(outputs["log_prob"], minibatch["log_prob"], rtol=0, atol=1e-6)
        torch.testing.assert_close(outputs["value"], minibatch["value"], rtol=0, atol=1e-5)


def test_sequences_that_begin_with_nothing_do_not() -> None:
    """The check above can fail: the states and the starts both matter."""
    policy, rollout = wandered()
    for field in ("state", "starts"):
        batch = rollout.batch(advantage=zeros(), target=zeros())
        batch[field] = torch.zeros_like(batch[field])
        outputs, _ = policy.evaluate(batch.obs, batch["action"], batch.mask, batch.memory)
        assert (outputs["value"] - batch["value"]).abs().max() > 1e-2, field


@pytest.mark.parametrize("length", [None, 4])
@pytest.mark.parametrize("size", [8, 16, 1000])
def test_an_update_takes_sequences(length: int | None, size: int) -> None:
    """A policy that hardly moves: nothing is clipped and no ratio is far from 1 in any minibatch of any epoch."""
    policy, rollout = wandered()
    policy.sequence_length = length
    config = PPOConfig(id="ppo", learning_rate=1e-12, n_epochs=3, batch_size=size)
    algorithm = make_algorithm(config, N)
    c = {name: value for name, value in config if isinstance(value, float)} | {"n_epochs": 3.0}
    flat = FlatParameters(policy)
    learner = Learner(policy, flat, make_optimizer(flat, config.optimizer), algorithm, torch.Generator())
    batch = algorithm.targets(rollout, c, policy)
    result = update(learner, batch, c)
    steps = length or T
    per_minibatch = min(max(1, size // steps), T * N // steps)
    assert result.updates == 3 * -(-(T * N // steps) // per_minibatch)
    assert abs(result.statistics["train/old_approx_kl"]) < 1e-6
    assert result.statistics["train/clip_fraction"] == 0.0
    assert result.statistics["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)


def test_the_gradient_goes_through_all_steps_of_a_sequence() -> None:
    """A2C on whole rollouts: the same as autograd through the unrolled sums, also for what is kept from step to step."""
    policy, rollout = wandered()
    config = A2CConfig(id="a2c", max_grad_norm=None)
    algorithm = make_algorithm(config, N)
    c = {name: value for name, value in config if isinstance(value, float)}
    batch = algorithm.targets(rollout, c, policy)
    params, heads, _ = policy(batch.obs, None, batch.memory)
    distribution = torch.distributions.Categorical(logits=params)
    loss = -(distribution.log_prob(batch["action"]) * batch["advantage"]).mean()
    loss = loss + c["vf_coef"] * (heads["value"] - batch["target"]).square().mean()
    loss = loss - c["ent_coef"] * distribution.entropy().mean()
    expected = torch.autograd.grad(loss, list(policy.parameters()))
    assert float(expected[0].abs()) > 1e-2  # of `pace`: none without the steps before

    flat = FlatParameters(policy)
    seen: list[torch.Tensor] = []

    class Watching:
        """Keeps the gradient of each update."""

        def batch(self, batch, c):
            pass

        def gradients(self, number, minibatch, outputs, loss):
            seen.append(flat.grads.clone())

        def stepped(self, number):
            pass

        finished = batch

    learner = Learner(policy, flat, make_optimizer(flat, config.optimizer), algorithm, torch.Generator())
    update(learner, batch, c, Watching())
    assert len(seen) == 1
    torch.testing.assert_close(seen[0], torch.cat([one.flatten() for one in expected]), rtol=1e-5, atol=1e-6)
