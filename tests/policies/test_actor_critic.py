"""Initialisation, the first ratio, encoders, the normaliser and flat parameters."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymnast.config.schema import PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.errors import EnvError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.encoders import Encoder
from gymnast.policies.flat import FlatParameters
from gymnast.policies.normalise import RunningNorm
from gymnast.rollout.batch import flat_order
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import collect
from gymnast.timing import StageTimer
from gymnast.training.trainer import load_policy, policy_tensors

BOX = spaces.Box(-np.inf, np.inf, (5,))
OBSERVATIONS = {
    "box": BOX,
    "matrix": spaces.Box(-1, 1, (2, 3)),
    "image": spaces.Box(0, 255, (4, 4), np.uint8),
    "discrete": spaces.Discrete(7),
    "multi_discrete": spaces.MultiDiscrete([3, 4]),
    "dict": spaces.Dict(
        place=spaces.Discrete(3), pixels=spaces.Box(0, 255, (2, 2), np.uint8), speed=spaces.Box(-1, 1, (2,))
    ),
}
ACTIONS = {
    "discrete": spaces.Discrete(3),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "box": spaces.Box(-1, 1, (2,)),
}


class AnySpaces(gym.Env):
    """Random observations of any space, random ends, and a random mask that always leaves something."""

    def __init__(self, observation_space, action_space, masked=False):
        self.observation_space, self.action_space, self.masked = observation_space, action_space, masked

    def _outcome(self):
        info = {}
        if self.masked:
            sizes = [2, 3] if isinstance(self.action_space, spaces.MultiDiscrete) else [3]
            info["action_mask"] = np.concatenate([self._part(n) for n in sizes])
        return self.observation_space.sample(), info

    def _part(self, n):
        mask = self.np_random.random(n) < 0.5
        mask[self.np_random.integers(n)] = True
        return mask

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self._outcome()

    def step(self, action):
        obs, info = self._outcome()
        return obs, 1.0, bool(self.np_random.random() < 0.1), bool(self.np_random.random() < 0.1), info


def collected(config, observation, action, *, masked=False, n_steps=40, n_envs=4, warm=False):
    """A policy away from its near-uniform start, and a rollout played with it."""
    envs = InProcessVector(lambda: AnySpaces(OBSERVATIONS[observation], ACTIONS[action], masked), n_envs)
    policy = ActorCritic(config, envs.observation_space, envs.action_space)
    flat = FlatParameters(policy)
    flat.values.add_(torch.randn(flat.values.shape, generator=torch.Generator().manual_seed(1)) * 0.2)
    rollout = Rollout(n_steps, envs, policy)
    envs.reset(list(range(n_envs)), rollout.first_row)
    if warm and policy.encoder.norm is not None:
        policy.encoder.norm.update(
            torch.randn(100, policy.encoder.size, generator=torch.Generator().manual_seed(2)) * 3 + 1
        )
    collect(policy, envs, rollout, torch.Generator().manual_seed(3), StageTimer())
    return policy, rollout


def first_ratios(policy, rollout):
    """Ratios of the first minibatch of the first epoch, before any step."""
    zeros = np.zeros(rollout.reward.shape, np.float32)
    order = flat_order(zeros.size, 32, torch.Generator().manual_seed(0))
    minibatch = next(rollout.batch(advantage=zeros, target=zeros).select(order.index).split(order.sizes))
    with torch.inference_mode(policy.by_hand), torch.no_grad():
        outputs, _ = policy.evaluate(minibatch.obs, minibatch["action"], minibatch.mask, minibatch.memory)
    return (outputs["log_prob"] - minibatch["log_prob"]).exp()


STYLES = {
    "separate": {},
    "shared": {"shared_trunk": True},
    "layer_norm": {"layer_norm": True},
    "dropout": {"dropout": 0.5},
    "dropout_shared_norm": {"dropout": 0.3, "shared_trunk": True, "layer_norm": True},
    "normalised": {"normalize_obs": True},
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("action", ACTIONS)
def test_the_first_ratio_is_one_for_every_network(action, style):
    policy, rollout = collected(PolicyConfig(hidden=[16, 16], **STYLES[style]), "box", action, warm=True)
    torch.testing.assert_close(first_ratios(policy, rollout), torch.ones(32), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_the_first_ratio_is_one_for_every_observation(observation, shared):
    policy, rollout = collected(PolicyConfig(hidden=[16], shared_trunk=shared), observation, "discrete")
    torch.testing.assert_close(first_ratios(policy, rollout), torch.ones(32), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("action", ["discrete", "multi_discrete"])
def test_the_first_ratio_is_one_with_masks(action, shared):
    policy, rollout = collected(PolicyConfig(hidden=[16], shared_trunk=shared), "box", action, masked=True)
    assert rollout.mask is not None and not rollout.mask.all()
    torch.testing.assert_close(first_ratios(policy, rollout), torch.ones(32), rtol=0, atol=1e-6)


def test_the_first_ratio_is_not_one_for_other_weights():
    policy, rollout = collected(PolicyConfig(hidden=[16]), "box", "discrete")
    with torch.no_grad():
        policy.actor.layers[-1].bias[0] += 0.1
    assert (first_ratios(policy, rollout) - 1).abs().max() > 1e-2


# ---- initialisation --------------------------------------------------------------------------------------------------


def is_orthogonal(weight: torch.Tensor, gain: float) -> bool:
    """W·Wᵀ = g²·I, or WᵀW where there are more rows than columns."""
    rows, columns = weight.shape
    gram = weight @ weight.T if rows <= columns else weight.T @ weight
    return torch.allclose(gram / gain**2, torch.eye(min(rows, columns)), atol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_orthogonal_initialisation(shared):
    policy = ActorCritic(PolicyConfig(hidden=[8, 8], shared_trunk=shared), BOX, spaces.Discrete(3))
    heads = {policy.actor.layers[-1]: 0.01, policy.critic.layers[-1]: 1.0}
    linear = [module for module in policy.modules() if isinstance(module, torch.nn.Linear)]
    assert len(linear) == (4 if shared else 6)
    for layer in linear:
        gain = heads.get(layer, math.sqrt(2.0))
        assert is_orthogonal(layer.weight, gain), gain
        assert not is_orthogonal(layer.weight, gain * 1.01)
        assert (layer.bias == 0).all()


def test_continuous_head_and_spread():
    policy = ActorCritic(PolicyConfig(log_std_init=-0.7), BOX, spaces.Box(-1, 1, (2,)))
    assert is_orthogonal(policy.actor.layers[-1].weight, 0.01)
    assert policy.log_std.tolist() == pytest.approx([-0.7, -0.7])


def test_initialisation_follows_its_generator():
    def weights(seed, init="orthogonal"):
        generator = torch.Generator().manual_seed(seed)
        policy = ActorCritic(PolicyConfig(init=init), BOX, spaces.Discrete(2), generator=generator)
        return FlatParameters(policy).values

    torch.manual_seed(5)  # the global generator plays no part
    first = weights(0)
    torch.manual_seed(6)
    assert torch.equal(first, weights(0)) and not torch.equal(first, weights(1))
    uniform = weights(0, "torch")
    assert not torch.equal(first, uniform)
    layer = ActorCritic(PolicyConfig(init="torch"), BOX, spaces.Discrete(2)).actor.layers[0]
    assert layer.weight.abs().max() <= 1 / math.sqrt(5) and layer.bias.abs().max() > 0


# ---- observations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("space", [spaces.Discrete(7), spaces.MultiDiscrete([3, 4, 2])])
def test_indexed_input_is_the_one_hot_input(space, shared):
    config = PolicyConfig(hidden=[6, 5], shared_trunk=shared)
    indexed = ActorCritic(config, space, spaces.Discrete(3))
    sizes = [7] if isinstance(space, spaces.Discrete) else [3, 4, 2]
    explicit = ActorCritic(config, spaces.Box(0, 1, (sum(sizes),)), spaces.Discrete(3))
    explicit.load_state_dict(indexed.state_dict())
    columns = [torch.randint(0, n, (50,), generator=torch.Generator().manual_seed(n)) for n in sizes]
    obs = columns[0] if len(sizes) == 1 else torch.stack(columns, -1)
    one_hot = torch.cat([torch.nn.functional.one_hot(c, n) for c, n in zip(columns, sizes)], -1).float()
    (params, heads, _), (expected, expected_heads, _) = indexed(obs), explicit(one_hot)
    torch.testing.assert_close(params, expected)
    torch.testing.assert_close(heads["value"], expected_heads["value"])
    with torch.no_grad():
        torch.testing.assert_close(indexed.values(obs), explicit.values(one_hot))
        torch.testing.assert_close(indexed.act(obs, None)["params"], explicit.act(one_hot, None)["params"])


def test_images_are_scaled_exactly_once():
    space = spaces.Box(0, 255, (2, 3), np.uint8)
    obs = torch.tensor([[[0, 51, 255], [102, 1, 254]]], dtype=torch.uint8)
    encoded = Encoder(space, PolicyConfig())(obs)
    torch.testing.assert_close(encoded, torch.tensor([[0, 0.2, 1.0, 0.4, 1 / 255, 254 / 255]]))
    assert float(encoded.max()) == 1.0 and obs.max() == 255  # the stored observation stays as it was
    # A float image is already scaled by its env and passes as it is.
    assert float(Encoder(spaces.Box(0, 1, (2, 3)), PolicyConfig())(torch.full((1, 2, 3), 0.5)).max()) == 0.5


def test_parts_of_a_dict_are_joined_in_the_order_of_the_space():
    encoder = Encoder(OBSERVATIONS["dict"], PolicyConfig())
    obs = {
        "speed": torch.tensor([[0.5, -0.5]]),
        "place": torch.tensor([2]),
        "pixels": torch.tensor([[[0, 255], [51, 0]]], dtype=torch.uint8),
    }
    assert encoder.size == 9
    torch.testing.assert_close(encoder(obs), torch.tensor([[0, 0, 1, 0, 1, 0.2, 0, 0.5, -0.5]]))


def test_other_spaces_are_refused_by_name():
    with pytest.raises(EnvError, match=r"Text.* is not supported"):
        Encoder(spaces.Text(3), PolicyConfig())


# ---- the normaliser --------------------------------------------------------------------------------------------------


def test_the_normaliser_equals_numpy_on_the_concatenation():
    random = np.random.default_rng(0)
    batches = [random.normal(10, [0.1, 5, 100], (n, 3)).astype(np.float32) for n in (1, 17, 400, 3)]
    norm = RunningNorm(3, clip=10.0)
    for i, batch in enumerate(batches):
        norm.update(torch.from_numpy(batch))
        seen = np.concatenate(batches[: i + 1]).astype(np.float64)
        np.testing.assert_allclose(norm.mean, seen.mean(0), rtol=1e-12)
        np.testing.assert_allclose(norm.variance, seen.var(0), rtol=1e-7, atol=1e-12)
        assert float(norm.count) == len(seen)
    x = batches[2][:50]
    expected = np.clip((x - seen.mean(0)) / np.sqrt(seen.var(0) + 1e-8), -10, 10)
    np.testing.assert_allclose(norm(torch.from_numpy(x)), expected, rtol=1e-5, atol=3e-5)


def test_the_normaliser_stays_as_it_is_after_so_many_samples():
    norm, free = RunningNorm(2, clip=10.0, most=100), RunningNorm(2, clip=10.0)
    for start in range(0, 120, 40):  # the third batch begins before the 100th sample
        batch = torch.randn(40, 2) + start
        norm.update(batch)
        free.update(batch)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    assert all(torch.equal(value, free.state_dict()[name]) for name, value in before.items())
    norm.update(torch.randn(40, 2) * 9)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    restored = RunningNorm(2, clip=10.0, most=100)
    restored.load_state_dict(before)
    restored.update(torch.randn(40, 2) * 9)
    assert torch.equal(restored.mean, before["mean"])


def test_the_normaliser_clips():
    norm = RunningNorm(1, clip=2.0)
    norm.update(torch.tensor([[-1.0], [1.0]]))
    assert norm(torch.tensor([[100.0], [-100.0], [1.0]])).flatten().tolist() == pytest.approx([2.0, -2.0, 1.0])


def test_an_unseen_normaliser_changes_nothing():
    x = torch.randn(5, 3)
    assert torch.equal(RunningNorm(3, clip=100.0)(x), x)


def test_normaliser_is_saved_and_restored_to_the_bit():
    config = PolicyConfig(hidden=[8], normalize_obs=True)
    policy = ActorCritic(config, BOX, spaces.Discrete(2))
    policy.encoder.norm.update(torch.randn(100, 5) * 7 + 3)
    saved = {name: tensor.clone() for name, tensor in policy_tensors(policy).items()}
    other = ActorCritic(config, BOX, spaces.Discrete(2), generator=torch.Generator().manual_seed(9))
    load_policy(other, saved)
    obs = torch.randn(20, 5) * 7 + 3
    with torch.no_grad():
        assert torch.equal(policy.act(obs, None)["params"], other.act(obs, None)["params"])
        assert torch.equal(policy.values(obs), other.values(obs))
    more = torch.randn(50, 5)
    policy.encoder.norm.update(more)
    other.encoder.norm.update(more)
    for name in ("mean", "variance", "count", "shift", "scale"):
        assert torch.equal(getattr(policy.encoder.norm, name), getattr(other.encoder.norm, name)), name


def test_acting_evaluating_and_updating_leave_the_normaliser_alone():
    policy, rollout = collected(PolicyConfig(hidden=[8], normalize_obs=True), "box", "discrete", warm=True)
    norm = policy.encoder.norm
    before = {name: tensor.clone() for name, tensor in norm.named_buffers()}
    obs = rollout.flat_obs(40)
    with torch.no_grad():
        policy.act(obs, None)
        policy.values(obs)
        policy.run(obs)
        policy(obs)
    for name, tensor in norm.named_buffers():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.parametrize(
    ("space", "kept"),
    [
        (OBSERVATIONS["dict"], [True] * 7 + [False] * 2),
        (spaces.Box(0, 255, (2,), np.uint8), [True] * 2),
        (spaces.MultiBinary(2), [True] * 2),
        (spaces.Box(-1, 1, (2,)), [False] * 2),
    ],
)
def test_one_hot_parts_flags_and_images_are_not_normalised(space, kept):
    encoder = Encoder(space, PolicyConfig(normalize_obs=True))
    encoder.norm.update(torch.rand(100, encoder.size) * 5 + 3)
    x = torch.rand(4, encoder.size)
    same = torch.isclose(encoder.norm(x), x).all(0)
    assert same.tolist() == kept


def test_indices_have_no_normaliser():
    assert Encoder(spaces.Discrete(5), PolicyConfig(normalize_obs=True)).norm is None


# ---- flat parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config", [PolicyConfig(hidden=[6]), PolicyConfig(hidden=[6], shared_trunk=True, layer_norm=True)]
)
def test_flat_parameters_are_the_parameters(config):
    policy = ActorCritic(config, BOX, spaces.Box(-1, 1, (2,)))
    before = [parameter.detach().clone() for parameter in policy.parameters()]
    obs = torch.randn(3, 5)
    with torch.no_grad():
        expected = policy.act(obs, None)["params"].clone()
    flat = FlatParameters(policy)
    parameters = list(policy.parameters())
    assert flat.values.numel() == sum(parameter.numel() for parameter in parameters)
    for parameter, old in zip(parameters, before):
        assert torch.equal(parameter, old)
    with torch.no_grad():
        torch.testing.assert_close(policy.act(obs, None)["params"], expected, rtol=0, atol=0)
        flat.values.mul_(2.0)
        for parameter, old in zip(parameters, before):
            assert torch.equal(parameter, old * 2)
        # Acting, the batched value, the update's path and autograd's all read the moved weights.
        params, heads, _ = policy(obs)
        torch.testing.assert_close(policy.act(obs, None)["params"], params)
        torch.testing.assert_close(policy.values(obs), heads["value"])
        torch.testing.assert_close(policy.run(obs)[0], params)
    assert not torch.allclose(params, expected)
    flat.grads.fill_(3.0)
    assert all((parameter.grad == 3.0).all() for parameter in parameters)
    assert float(flat.norm()) == pytest.approx(3.0 * math.sqrt(flat.grads.numel()))


def test_loading_weights_keeps_the_flat_views():
    policy, other = (
        ActorCritic(PolicyConfig(), BOX, spaces.Discrete(2), generator=torch.Generator().manual_seed(i)) for i in (0, 1)
    )
    flat = FlatParameters(policy)
    load_policy(policy, policy_tensors(other))
    assert torch.equal(flat.values, FlatParameters(other).values)
    flat.values.zero_()
    assert all((parameter == 0).all() for parameter in policy.parameters())


def test_a_policy_without_critic_has_no_values():
    policy = ActorCritic(PolicyConfig(shared_trunk=True), BOX, spaces.Discrete(2), critic=False)
    assert not policy.has_critic and policy.critic is None and not policy.shared
    assert policy.values(torch.randn(3, 5)).tolist() == [0, 0, 0]
