"""Recurrent policies: a sequence gives what its steps gave, and derivatives are those of autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import ValidationError
from torch import nn

from gymnast.config.schema import PolicyConfig
from gymnast.policies import make_policy
from gymnast.policies.base import Head, Memory
from gymnast.policies.flat import FlatParameters
from gymnast.policies.recurrent.actor_critic import RecurrentActorCritic
from gymnast.policies.recurrent.layers import RecurrentLayers

L, N = 12, 5
BOX = spaces.Box(-1, 1, (3,))
IMAGE = spaces.Box(0, 255, (2, 40, 40), np.uint8)
OBSERVATIONS = {
    "box": BOX,
    "discrete": spaces.Discrete(7),
    "dict": spaces.Dict({"image": IMAGE, "speed": BOX}),
}
STYLES = {
    "lstm": {"memory": "lstm"},
    "gru": {"memory": "gru"},
    "lstm_shared": {"memory": "lstm", "shared_memory": True},
    "gru_trunk": {"memory": "gru", "shared_trunk": True},
    "lstm_deep": {"memory": "lstm", "memory_layers": 2},
    "gru_deep_norm": {"memory": "gru", "memory_layers": 3, "layer_norm": True},
}


def policy_of(style: str, observation: spaces.Space = BOX, action: spaces.Space | None = None, **kwargs):
    config = PolicyConfig(hidden=[6], memory_size=4, precision="float32", **STYLES[style])
    policy = make_policy(config, observation, action or spaces.Discrete(3), **kwargs)
    assert isinstance(policy, RecurrentActorCritic)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))  # a head of nearly zero would hide what it reads
    return policy


def observed(space: spaces.Space, n: int):
    generator = torch.Generator().manual_seed(1)
    if isinstance(space, spaces.Dict):
        return {key: observed(part, n) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return torch.randint(int(space.n), (n,), generator=generator)
    if space.dtype == np.uint8:
        return torch.randint(256, (n, *space.shape), dtype=torch.uint8, generator=generator)
    return torch.randn(n, *space.shape, generator=generator)


def at(obs, rows):
    if isinstance(obs, dict):
        return {key: part[rows] for key, part in obs.items()}
    return obs[rows]


def a_memory(policy, share: float = 0.25, *, uneven: bool = False) -> Memory:
    generator = torch.Generator().manual_seed(2)
    starts = torch.rand(L, N, generator=generator) < share
    starts[0] = torch.arange(N) < 2
    present = None
    if uneven:
        present = torch.arange(L)[:, None] < torch.tensor([L, 1, 7, 0, 5])
        starts &= present
    return Memory(torch.randn(N, *policy.state_shape, generator=generator), starts, present)


def stepped(policy, obs, memory: Memory, mask=None):
    """Acting step by step: parameters [L·N, P], values [L·N], and the last state."""
    state, params, values = memory.state, [], []
    for t in range(L):
        rows = slice(t * N, (t + 1) * N)
        state = torch.where(memory.starts[t, :, None], torch.zeros(()), state)
        outputs = policy.act(at(obs, rows), None, None if mask is None else mask[rows], state)
        params.append(outputs["params"])
        values.append(outputs["value"])
        torch.testing.assert_close(policy.bootstrap(at(obs, rows), state)["value"], outputs["value"])
        state = outputs["state"]
    return torch.cat(params), torch.cat(values), state


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("style", STYLES)
def test_a_sequence_gives_what_its_steps_gave(style, share):
    policy = policy_of(style)
    obs, memory = observed(BOX, L * N), a_memory(policy, share)
    with torch.no_grad():
        params, values, state = stepped(policy, obs, memory)
        ran, heads, _ = policy.run(obs, None, memory)
        torch.testing.assert_close(ran, params, rtol=0, atol=1e-6)
        torch.testing.assert_close(heads["value"], values, rtol=0, atol=1e-6)
        torch.testing.assert_close(policy.remembered(obs, memory), state, rtol=0, atol=1e-6)
        plain, heads, after = policy(obs, None, memory)
        torch.testing.assert_close(plain, params, rtol=0, atol=1e-6)
        torch.testing.assert_close(after, state, rtol=0, atol=1e-6)
        torch.testing.assert_close(heads["value"], values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("observation", ["discrete", "dict"])
def test_it_follows_any_encoder_and_knows_masks(observation):
    space = OBSERVATIONS[observation]
    policy = policy_of("lstm", space)
    obs, memory = observed(space, L * N), a_memory(policy)
    mask = torch.ones(L * N, 3, dtype=torch.bool)
    mask[::2, 1] = False
    with torch.no_grad():
        params, values, _ = stepped(policy, obs, memory, mask)
        ran, heads, _ = policy.run(obs, mask, memory)
    torch.testing.assert_close(ran, params, rtol=0, atol=2e-5)
    torch.testing.assert_close(heads["value"], values, rtol=0, atol=2e-5)
    assert (ran[::2, 1] < -1e6).all() and (ran[1::2] > -1e6).all()


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("style", STYLES)
def test_derivatives_are_those_of_autograd(style, uneven):
    action = spaces.Box(-1, 1, (2,))
    policy = policy_of(style, action=action, heads=[Head("extra", 2)])
    memory = a_memory(policy, uneven=uneven)
    n = L * N if memory.present is None else int(memory.present.sum())
    check_gradients(policy, observed(BOX, n), torch.randn(n, 2), memory)


@pytest.mark.parametrize("observation", ["discrete", "dict"])
def test_derivatives_go_through_any_encoder(observation):
    space = OBSERVATIONS[observation]
    policy = policy_of("gru", space)
    memory = a_memory(policy)
    check_gradients(policy, observed(space, L * N), torch.randint(3, (L * N,)), memory)


def check_gradients(policy, obs, action, memory) -> None:
    n = len(action)
    weights = {name: torch.randn(n) for name in ("log_prob", "value")}
    with torch.enable_grad():
        params, heads, _ = policy(obs, None, memory)
        if action.is_floating_point():
            mean, log_std = params.chunk(2, -1)
            log_prob = torch.distributions.Normal(mean, log_std.exp()).log_prob(action).sum(-1)
        else:
            log_prob = torch.distributions.Categorical(logits=params).log_prob(action)
        loss = (weights["log_prob"] * log_prob).sum() + (weights["value"] * heads["value"]).sum()
        if "extra" in heads:
            weights["extra"] = torch.randn(n, 2)
            loss = loss + (weights["extra"] * heads["extra"]).sum()
        expected = torch.autograd.grad(loss, list(policy.parameters()))
    flat = FlatParameters(policy)
    with torch.inference_mode(policy.by_hand), torch.no_grad():
        outputs, tape = policy.evaluate(obs, action, None, memory)
        policy.backprop(tape, weights)
    torch.testing.assert_close(outputs["log_prob"], log_prob.detach(), rtol=1e-4, atol=1e-4)
    for (name, _), got, wanted in zip(policy.named_parameters(), flat.split(flat.grads), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=2e-3, msg=lambda m, name=name: f"{name}: {m}")
        assert float(wanted.abs().max()) > 0, name


@pytest.mark.parametrize("style", ["lstm", "gru"])
def test_the_order_of_envs_changes_nothing(style):
    policy = policy_of(style)
    obs, memory = observed(BOX, L * N), a_memory(policy)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = Memory(memory.state[order], memory.starts[:, order])
    with torch.no_grad():
        here = policy.run(obs, None, memory)[0].view(L, N, -1)
        there = policy.run(obs.view(L, N, -1)[:, order].flatten(0, 1), None, moved)[0].view(L, N, -1)
    torch.testing.assert_close(there, here[:, order], rtol=0, atol=1e-6)


def test_what_was_before_an_episode_is_forgotten():
    policy = policy_of("lstm")
    obs, memory = observed(BOX, L * N), a_memory(policy, 0.0)
    memory.starts[6] = True
    with torch.no_grad():
        first = policy.run(obs, None, memory)[0]
        changed = torch.cat((obs[: 6 * N] + 1.0, obs[6 * N :]))
        second = policy.run(changed, None, Memory(memory.state + 1.0, memory.starts))[0]
    assert torch.equal(first[6 * N :], second[6 * N :])
    assert (first[: 6 * N] - second[: 6 * N]).abs().max() > 1e-2


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_cells_are_those_of_torch(kind):
    ours = RecurrentLayers(kind, 3, 4, depth=1, width=1, indexed=False)
    theirs = getattr(nn, kind.upper())(3, 4)
    order = {"lstm": [3, 0, 1, 2], "gru": [0, 1, 2]}[kind]  # torch's are i, f, g, o and r, z, n
    with torch.no_grad():
        blocks = [tensor.chunk(ours.cell.gates) for tensor in theirs.parameters()]
        w_in, w_hidden, b_in, b_hidden = (torch.cat([block[k] for k in order]) for block in blocks)
        ours.inputs.layers[0].weight.copy_(w_in)
        ours.weights[0].copy_(w_hidden.t()[None])
        if kind == "gru":
            b_in = b_in + torch.cat((b_hidden[:8], torch.zeros(4)))
            ours.biases[0].copy_(b_hidden[8:])
        else:
            b_in = b_in + b_hidden
        ours.inputs.layers[0].bias.copy_(b_in)
        x = torch.randn(L, N, 3)
        memory = Memory(torch.zeros(N, ours.cell.kept * 4), torch.zeros(L, N, dtype=torch.bool))
        got, _ = ours.run(x.flatten(0, 1), memory)
    torch.testing.assert_close(got.view(L, N, 4), theirs(x)[0], rtol=0, atol=1e-6)


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValidationError, match="sequence_length is for a policy with memory: set memory to lstm or gru"):
        PolicyConfig(sequence_length=8)
    with pytest.raises(ValidationError, match="use layer_norm with memory"):
        PolicyConfig(memory="lstm", batch_norm=True)
