"""Random network distillation: what is new pays, ends change nothing, and the target never learns."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.algorithms import A2CConfig, PPOConfig
from gymnast.config.schema import PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.errors import ConfigError
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import StepCollector
from gymnast.rollout.returns import gae
from gymnast.timing import StageTimer
from gymnast.training.update import Learner, Network, update

RND = {"weight": 2.0, "first_layer": 16, "further_layers": [16], "features": 8}
BOX = spaces.Box(-1, 1, (3,))
PICTURE = spaces.Box(0, 255, (2, 40, 40), np.uint8)
SMALL = spaces.Box(0, 255, (6, 6, 3), np.uint8)
SPACES = {
    "numbers": BOX,
    "picture": PICTURE,
    "small picture": SMALL,
    "parts": spaces.Dict({"screen": PICTURE, "speed": BOX, "gear": spaces.Discrete(4)}),
}
T, N = 8, 3


def algorithm_of(space, kind="ppo", **policy):
    kinds = {"ppo": PPOConfig, "a2c": A2CConfig}
    algorithm = make_algorithm(kinds[kind](id=kind, rnd=RND), N)
    settings = PolicyConfig(hidden=[8], precision="float32", **policy)
    made = algorithm.make_policy(settings, space, spaces.Discrete(2), generator=torch.Generator().manual_seed(0))
    return algorithm, made


def sampled(space, n, seed=0):
    space.seed(seed)
    samples = [space.sample() for _ in range(n)]
    if isinstance(space, spaces.Dict):
        return {key: torch.from_numpy(np.stack([np.asarray(one[key]) for one in samples])) for key in space.spaces}
    return torch.from_numpy(np.stack(samples))


class Ending(gym.Env):
    """Random numbers and ends of both kinds."""

    observation_space = BOX
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action):
        over, late = self.np_random.random(2) < 0.2
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), 0.0, bool(over), bool(late), {}


def played(algorithm, policy):
    envs = InProcessVector(Ending, N)
    rollout = Rollout(T, envs, policy, algorithm.fields(policy))
    collector = StepCollector(policy, envs, rollout, torch.Generator().manual_seed(0))
    collector.start_episodes(list(range(N)))
    collector.collect(StageTimer())
    assert rollout.terminated.any() and rollout.truncated.any()
    return rollout


@pytest.mark.parametrize("space", SPACES)
def test_what_was_learned_is_no_longer_new(space):
    algorithm, _ = algorithm_of(SPACES[space])
    rnd = algorithm.rnd
    known, new = sampled(SPACES[space], 32), sampled(SPACES[space], 32, seed=1)
    if space == "numbers":
        new = new + 3.0  # between points of three dimensions, a network knows what it was not shown
    rnd.norm.update(rnd.flat(known))
    flat = FlatParameters(rnd)
    optimizer = make_optimizer(flat, algorithm.config.optimizer)
    target = {name: tensor.clone() for name, tensor in rnd.target.state_dict().items()}
    before = rnd.novelty(known).mean()
    for _ in range(150):
        flat.grads.zero_()
        rnd.learn(known)
        with torch.no_grad():
            optimizer.step(2e-3)
    assert float(rnd.novelty(known).mean()) < 0.3 * float(before)
    assert float(rnd.novelty(known).mean()) < 0.6 * float(rnd.novelty(new).mean())
    assert all(torch.equal(tensor, target[name]) for name, tensor in rnd.target.state_dict().items())
    assert not list(rnd.target.parameters())


def test_ends_do_not_change_intrinsic_advantages():
    """Nor do extrinsic rewards; with ends, they would be others."""
    found = []
    for ends in (True, False):
        algorithm, policy = algorithm_of(BOX)
        rollout = played(algorithm, policy)
        if not ends:
            rollout.terminated[:] = rollout.truncated[:] = False
        found.append(algorithm.rnd.targets(rollout))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    rollout = played(*algorithm_of(BOX))
    value = rollout["intrinsic_value"].numpy()
    reward = found[0][1] * 0 + 1.0
    ended = gae(reward, value[:-1], value[1:], rollout.terminated, rollout.truncated, 0.99, 0.95)[0]
    never = np.zeros_like(rollout.terminated)
    assert np.abs(ended - gae(reward, value[:-1], value[1:], never, never, 0.99, 0.95)[0]).max() > 0.1


@pytest.mark.parametrize("kind", ["ppo", "a2c"])
def test_advantages_are_the_sum_of_both(kind):
    algorithm, policy = algorithm_of(BOX, kind)
    rollout = played(algorithm, policy)
    c = {"gamma": 0.99, "gae_lambda": 0.95}
    other, _ = algorithm_of(BOX, kind)
    curious, target = other.rnd.targets(rollout)
    batch = algorithm.targets(rollout, c, policy)
    t = T
    plain = gae(
        rollout.reward[:t], rollout.host("value"), rollout.next["value"][:t], rollout.terminated[:t],
        rollout.truncated[:t], 0.99, 0.95,
    )[0]  # fmt: skip
    np.testing.assert_allclose(batch["advantage"].view(T, N).numpy(), plain + 2.0 * curious, atol=1e-5)
    np.testing.assert_allclose(batch["intrinsic_target"].view(T, N).numpy(), target, atol=1e-5)


@pytest.mark.parametrize("policy", [{}, {"memory": "gru"}, {"shared_trunk": True}], ids=str)
def test_an_update_teaches_predictor_and_intrinsic_value(policy):
    algorithm, made = algorithm_of(BOX, **policy)
    rollout = played(algorithm, made)
    flat = FlatParameters(made)
    own = FlatParameters(algorithm.modules(made)["rnd"])
    networks = [Network("rnd", algorithm.rnd, own, make_optimizer(own, algorithm.config.optimizer))]
    learner = Learner(
        made, flat, make_optimizer(flat, algorithm.config.optimizer), algorithm, torch.Generator(), networks
    )
    c = {name: value for name, value in algorithm.config if isinstance(value, float)} | {"n_epochs": 30.0}
    c["learning_rate"] = 3e-3
    batch = algorithm.weighted(algorithm.targets(rollout, c, made))
    before = own.values.clone()
    first = update(learner, batch, {**c, "n_epochs": 1.0}).statistics
    last = update(learner, batch, c).statistics
    assert not torch.equal(before, own.values)
    assert last["train/rnd_loss"] < first["train/rnd_loss"]
    assert last["train/rnd_value_loss"] < first["train/rnd_value_loss"]


def test_observations_that_are_only_choices_are_refused():
    with pytest.raises(
        ConfigError, match=r"algo\.rnd measures how new observations of numbers or images are; this env has"
    ):
        algorithm_of(spaces.Discrete(5))
