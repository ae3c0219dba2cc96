"""What a policy inherits: the fast path of the update and the outputs that algorithms add, against autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_policies import Summing, Wrapped

from gymnast.algorithms import make_algorithm
from gymnast.algorithms.optimizer import make_optimizer
from gymnast.config.algorithms import PPOConfig
from gymnast.config.schema import PolicyConfig
from gymnast.envs.families.classic.cartpole import CartPoleVector
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.base import Head, Memory, Policy
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.collect import collect
from gymnast.timing import StageTimer
from gymnast.training.update import Learner, update

B = 12
BOX = spaces.Box(-1, 1, (5,))
SCENE = spaces.Dict(image=spaces.Box(0, 255, (1, 36, 36), np.uint8), speed=spaces.Box(-1, 1, (2,)))
HEADS = (Head("value_int", bootstrapped=True), Head("risk", size=3))
NETWORKS: dict[str, dict[str, Any]] = {
    "separate": {"hidden": [8, 6]},
    "shared": {"hidden": [8, 6], "shared_trunk": True},
    "layer norm": {"hidden": [8], "shared_trunk": True, "layer_norm": True},
    "linear": {"hidden": []},
}


def observations(space: spaces.Space) -> Any:
    """Random ones."""
    space.seed(0)
    drawn = [space.sample() for _ in range(B)]
    if isinstance(space, spaces.Dict):
        return {name: torch.from_numpy(np.stack([one[name] for one in drawn])) for name in space.spaces}
    return torch.from_numpy(np.stack(drawn))


def made(space: spaces.Space, action_space: spaces.Space, *, critic: bool = True, **network: Any) -> ActorCritic:
    """A policy with further heads, away from its near-uniform start."""
    config = PolicyConfig.model_validate({"cnn_features": 8, "precision": "float32", **network})
    policy = ActorCritic(config, space, action_space, critic=critic, heads=HEADS)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            width = max(1, parameter[0].numel()) ** 0.5
            parameter.add_(0.3 / width * torch.randn(parameter.shape, generator=generator))
    return policy


def given(names: list[str]) -> dict[str, torch.Tensor]:
    """Gradients of outputs by name."""
    generator = torch.Generator().manual_seed(2)
    shapes = {"risk": (B, 3)}
    return {name: torch.randn(shapes.get(name, (B,)), generator=generator) for name in names}


def by_autograd(policy: Policy, obs: Any, action: Any, gradients: dict[str, Any], *, mask=None, memory=None) -> Any:
    """Outputs by torch.distributions and the gradient of all parameters, one flat tensor."""
    params, heads, _ = policy(obs, mask, memory)
    if isinstance(policy.distribution.action_shape, tuple) and policy.distribution.action_shape:
        mean, log_std = params.chunk(2, -1)
        normal = torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)
        outputs = {"log_prob": normal.log_prob(action), "entropy": normal.entropy(), **heads}
    else:
        choice = torch.distributions.Categorical(logits=params)
        outputs = {"log_prob": choice.log_prob(action), "entropy": choice.entropy(), **heads}
    total = sum((outputs[name] * gradient).sum() for name, gradient in gradients.items())
    found = torch.autograd.grad(total, list(policy.parameters()), allow_unused=True)
    pairs = zip(policy.parameters(), found, strict=True)
    flat = torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])
    return {name: output.detach() for name, output in outputs.items()}, flat


def check(policy: Policy, obs: Any, gradients: dict[str, Any], *, mask=None, memory=None) -> None:
    """`evaluate` and `backprop` give what autograd gives."""
    with torch.no_grad():
        params = policy(obs, mask, memory)[0]
        noise = policy.distribution.noise((B,), torch.Generator().manual_seed(3))
        action = policy.distribution.sample(params, noise)
    expected, gradient = by_autograd(policy, obs, action, gradients, mask=mask, memory=memory)
    flat = FlatParameters(policy)
    with torch.inference_mode(policy.by_hand), torch.no_grad():
        outputs, tape = policy.evaluate(obs, action, mask, memory)
        assert not any(tensor.requires_grad for tensor in outputs.values())
        policy.backprop(tape, gradients)
    assert outputs.keys() == expected.keys()
    for name, output in outputs.items():
        torch.testing.assert_close(output, expected[name], rtol=1e-5, atol=1e-5)
    assert float(gradient.abs().max()) > 1e-2
    torch.testing.assert_close(flat.grads, gradient, rtol=1e-4, atol=2e-5)
    with torch.no_grad():
        torch.testing.assert_close(policy.log_prob(obs, action, mask, memory), expected["log_prob"])


ASKED = [
    ["log_prob", "entropy", "value", "value_int", "risk"],
    ["log_prob", "value"],
    ["risk"],  # the policy itself is left alone
    ["entropy", "value_int"],
]


@pytest.mark.parametrize("own", [False, True], ids=["inherited", "hand-written"])
@pytest.mark.parametrize("names", ASKED, ids="+".join)
@pytest.mark.parametrize("network", NETWORKS)
def test_the_gradients_of_further_heads_are_autograds(network: str, names: list[str], own: bool) -> None:
    for space in (BOX, SCENE):
        for action_space in (spaces.Discrete(3), spaces.Box(-1, 1, (2,))):
            policy = made(space, action_space, **NETWORKS[network])
            check(policy if own else Wrapped(policy), observations(space), given(names))


@pytest.mark.parametrize("own", [False, True], ids=["inherited", "hand-written"])
def test_masks_and_one_number_for_the_entropy_of_all(own: bool) -> None:
    policy = made(BOX, spaces.Discrete(3), hidden=[8])
    mask = torch.ones(B, 3, dtype=torch.bool)
    mask[::2, 1] = False
    gradients: dict[str, Any] = {**given(["log_prob", "value_int"]), "entropy": -0.01}
    check(policy if own else Wrapped(policy), observations(BOX), gradients, mask=mask)


def test_what_was_remembered_is_learned_through() -> None:
    """Sequences of four steps, of which some begin in the middle; all parameters matter to the last step."""
    policy = Summing(PolicyConfig(), BOX, spaces.Discrete(3))
    with torch.no_grad():
        policy.pace.fill_(0.7)
    starts = torch.zeros(4, 3, dtype=torch.bool)
    starts[2, 1] = True
    memory = Memory(torch.randn(3, 1, generator=torch.Generator().manual_seed(4)), starts)
    check(policy, observations(BOX), given(["log_prob", "entropy", "value"]), memory=memory)


def test_heads_without_a_value() -> None:
    """An algorithm without a critic may still predict something."""
    policy = made(BOX, spaces.Discrete(3), critic=False, hidden=[8])
    assert not policy.has_critic and policy.bootstrapped == ["value_int"]
    obs = observations(BOX)
    assert policy.values(obs).tolist() == [0.0] * B
    check(policy, obs, given(["log_prob", "value_int", "risk"]))


# ---- acting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
def test_acting_gives_what_learning_sees(network: str) -> None:
    """The inherited and the hand-written way: actions by the same noise, heads that are bootstrapped, nothing else."""
    inner = made(BOX, spaces.Discrete(3), **NETWORKS[network])
    obs = observations(BOX)
    with torch.no_grad():
        params, heads, _ = inner(obs)
        noise = inner.distribution.noise((B,), torch.Generator().manual_seed(3))
        fast, plain = (policy.act(obs, noise) for policy in (inner, Wrapped(inner)))
        assert plain.keys() == {"action", "params", "value", "value_int"}
        assert fast.keys() == (plain.keys() if inner.shared else {"action", "params"})
        for name in fast:
            torch.testing.assert_close(fast[name], plain[name])
        torch.testing.assert_close(plain["params"], params)
        for policy in (inner, Wrapped(inner)):
            expected = policy.bootstrap(obs)
            assert expected.keys() == {"value", "value_int"}
            for name, tensor in expected.items():
                torch.testing.assert_close(tensor, heads[name])
            torch.testing.assert_close(policy.values(obs), heads["value"])


@pytest.mark.parametrize("kind", ["separate", "shared", "inherited"])
def test_the_rollout_keeps_bootstrapped_heads(kind: str) -> None:
    """Before every step and after the last one, next to the value; a cut-off episode by its own last observation."""
    envs = CartPoleVector(3, max_episode_steps=7)
    inner = ActorCritic(
        PolicyConfig(hidden=[8], shared_trunk=kind == "shared"), envs.observation_space, envs.action_space, heads=HEADS
    )
    policy = Wrapped(inner) if kind == "inherited" else inner
    rollout = Rollout(20, envs, policy)
    assert "risk" not in rollout
    envs.reset([1, 2, 3], rollout.first_row)
    ended = collect(policy, envs, rollout, torch.Generator().manual_seed(0), StageTimer())
    with torch.no_grad():
        _, heads, _ = policy(rollout.flat_obs(21))
        for name in ("value", "value_int"):
            torch.testing.assert_close(rollout[name].flatten(), heads[name], rtol=0, atol=1e-6)
            following = heads[name].view(21, 3)[1:].clone()
            cut = [(t, episode) for t, episode in ended if not episode.terminated]
            assert cut
            for t, episode in cut:
                final = torch.as_tensor(np.asarray(episode.final_obs))[None]
                following[t, episode.index] = policy(final)[1][name][0]
            np.testing.assert_allclose(rollout.next[name], following, rtol=0, atol=1e-6)
    assert not torch.allclose(rollout["value"], rollout["value_int"])


def test_training_a_newcomers_policy_is_training_ours() -> None:
    """PPO by the inherited path and by the hand-written one: the same weights after several minibatches and epochs."""
    ends = []
    for wrap in (False, True):
        envs = CartPoleVector(4)
        inner = ActorCritic(PolicyConfig(hidden=[16]), envs.observation_space, envs.action_space)
        policy: Policy = Wrapped(inner) if wrap else inner
        config = PPOConfig(id="ppo", batch_size=32, learning_rate=1e-3)
        algorithm, flat = make_algorithm(config, 4), FlatParameters(policy)
        rollout = Rollout(32, envs, policy)
        envs.reset([0, 1, 2, 3], rollout.first_row)
        collect(policy, envs, rollout, torch.Generator().manual_seed(1), StageTimer())
        c = {name: value for name, value in config if isinstance(value, float)} | {"n_epochs": 3.0}
        learner = Learner(
            policy, flat, make_optimizer(flat, config.optimizer), algorithm, torch.Generator().manual_seed(2)
        )
        before = flat.values.clone()
        result = update(learner, algorithm.weighted(algorithm.targets(rollout, c, policy)), c)
        assert result.updates == 12 and (flat.values - before).abs().max() > 1e-3
        ends.append((flat.values.clone(), result.statistics))
    torch.testing.assert_close(ends[0][0], ends[1][0], rtol=0, atol=1e-5)
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-3, abs=1e-5)
