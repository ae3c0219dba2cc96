"""What makes CNNs faster on a CPU changes no bit: images turned once, weights turned once."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymnast.config.schema import ConvLayer, PolicyConfig
from gymnast.envs.spaces import allocate, copy_rows, row
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters

FIRST = spaces.Box(0, 255, (4, 84, 84), np.uint8)
SHAPES = {
    "channels first": FIRST,
    "channels last": spaces.Box(0, 255, (84, 84, 4), np.uint8),
    "stacked colours": spaces.Box(0, 255, (4, 40, 44, 3), np.uint8),
    "one channel": spaces.Box(0, 255, (1, 36, 120), np.uint8),
    "more channels than rows": spaces.Box(0, 255, (12, 10, 12), np.uint8),
    "floats": spaces.Box(0.0, 1.0, (4, 40, 44), np.float32),
    "two images and a vector": spaces.Dict({"a": FIRST, "v": spaces.Box(-1, 1, (3,)), "z": FIRST}),
}
LAYERS = [ConvLayer(channels=6, kernel=4, stride=2), ConvLayer(channels=5, kernel=3, padding=1)]


def made(space: spaces.Space, precision: Any, cnn: Any = "nature") -> tuple[ActorCritic, Any]:
    """A policy and eight observations for it."""
    config = PolicyConfig(cnn=cnn, precision=precision, hidden=[])
    space.seed(0)
    samples = [space.sample() for _ in range(8)]
    obs: Any = (
        {key: torch.from_numpy(np.stack([one[key] for one in samples])) for key in space.spaces}
        if isinstance(space, spaces.Dict)
        else torch.from_numpy(np.stack(samples))
    )
    return ActorCritic(config, space, spaces.Discrete(3)), obs


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("name", SHAPES)
def test_packed_images_are_the_same_images(name: str, precision: str) -> None:
    policy, obs = made(
        SHAPES[name], precision, LAYERS if name in ("more channels than rows", "one channel") else "nature"
    )
    packed = policy.encoder.packed(obs)
    order = torch.tensor([3, 0, 5, 5, 1, 7])
    taken, plain = (_taken(images, order) for images in (packed, obs))
    flat = FlatParameters(policy)
    gradients = []
    for images in (plain, taken):
        flat.grads.zero_()
        with torch.no_grad():
            params, heads, tape = policy.run(images)
            policy.push_back(tape, torch.ones_like(params), heads)
        gradients.append((params, heads["value"], flat.grads.clone()))
    assert gradients[0][2].abs().max() > 0
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)


def _taken(obs: Any, order: torch.Tensor) -> Any:
    """As an epoch takes its samples."""
    if isinstance(obs, dict):
        return {key: part.index_select(0, order) for key, part in obs.items()}
    return obs.index_select(0, order)


def test_only_images_are_copied_and_only_when_needed() -> None:
    policy, obs = made(SHAPES["two images and a vector"], "float32")
    packed = policy.encoder.packed(obs)
    assert packed["v"] is obs["v"] and packed["a"].shape == (8, 84, 84, 4)
    last, images = made(SHAPES["channels last"], "float32")
    assert last.encoder.packed(images).data_ptr() == images.data_ptr()


@pytest.mark.parametrize("name", SHAPES)
def test_images_laid_out_for_the_network_are_packed_already(name: str) -> None:
    space = SHAPES[name]
    policy, obs = made(space, "float32", LAYERS if name in ("more channels than rows", "one channel") else "nature")
    arrays = policy.encoder.laid_out(allocate(space, (3, 8)))
    copy_rows(
        row(arrays, 1), {key: part.numpy() for key, part in obs.items()} if isinstance(obs, dict) else obs.numpy()
    )
    for array, part in _pairs(arrays, obs):
        assert array.shape == (3, *part.shape) and array.dtype == part.numpy().dtype
        assert (array[1] == part.numpy()).all() and not array[::2].any()
    stored: Any = (
        {key: torch.from_numpy(array).flatten(0, 1) for key, array in arrays.items()}
        if isinstance(arrays, dict)
        else torch.from_numpy(arrays).flatten(0, 1)
    )
    packed = policy.encoder.packed(stored)
    for one, other in _pairs(packed, stored):
        assert one.data_ptr() == other.data_ptr()  # nothing was copied
    eight = torch.arange(8, 16)
    for one, other in _pairs(_taken(packed, eight), _taken(policy.encoder.packed(obs), eight - 8)):
        assert torch.equal(one, other)


def _pairs(first: Any, second: Any) -> list[tuple[Any, Any]]:
    return [(first[key], second[key]) for key in first] if isinstance(first, dict) else [(first, second)]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_memory_kept_from_minibatch_to_minibatch_leaks_nothing(precision: str) -> None:
    policy, obs = made(FIRST, precision)
    flat = FlatParameters(policy)

    def gradient(images: torch.Tensor, of: ActorCritic, flat: FlatParameters) -> torch.Tensor:
        flat.grads.zero_()
        with torch.no_grad():
            params, heads, tape = of.run(images)
            of.push_back(tape, torch.ones_like(params), heads)
        return flat.grads.clone()

    for images in (obs[:3], obs, obs[5:], obs[:1], obs):  # growing, shrinking and back
        fresh = copy.deepcopy(policy)
        fresh.encoder.nets[0]._kept = None
        assert torch.equal(gradient(images, policy, flat), gradient(images, fresh, FlatParameters(fresh)))


def test_learning_does_not_import_packages_for_algebra() -> None:
    """They take tens of megabytes and a second; torch imports them for a gradient that is given to it."""
    code = (
        "import sys, numpy as np, torch\nfrom gymnasium import spaces\n"
        "from gymnast.config.schema import PolicyConfig\nfrom gymnast.policies.actor_critic import ActorCritic\n"
        "from gymnast.policies.flat import FlatParameters\n"
        "space = spaces.Box(0, 255, (4, 84, 84), np.uint8)\n"
        "policy = ActorCritic(PolicyConfig(cnn='nature', precision='float32'), space, spaces.Discrete(3))\n"
        "flat = FlatParameters(policy)\ntorch.set_grad_enabled(False)\n"
        "params, heads, tape = policy.run(torch.ones(2, 4, 84, 84, dtype=torch.uint8))\n"
        "policy.push_back(tape, torch.ones_like(params), heads)\n"
        "print(float(flat.grads.norm()) > 0, 'sympy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cnn", ["nature", "impala"])
def test_held_weights_act_alike_and_are_let_go(cnn: str, precision: str) -> None:
    policy, obs = made(FIRST, precision, cnn)
    with torch.inference_mode():
        before = policy.act(obs, None)
        assert before.keys() == {"action", "params", "value"}
        with policy.encoder.held():
            for _ in range(2):
                again = policy.act(obs, None)
                assert again.keys() == before.keys()
                assert all(torch.equal(again[name], tensor) for name, tensor in before.items())
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(1.05)
    with torch.inference_mode():
        moved = policy.act(obs, None)
        with policy.encoder.held():
            held = policy.act(obs, None)
    assert not torch.equal(moved["params"], before["params"])
    assert torch.equal(moved["params"], held["params"])
    flat = FlatParameters(policy)
    with torch.no_grad():  # and what is learned from comes from the weights themselves
        params, heads, tape = policy.run(obs)
        policy.push_back(tape, torch.randn(params.shape, generator=torch.Generator().manual_seed(0)), heads)
    assert all(piece.abs().max() > 0 for piece in flat.split(flat.grads))


def test_held_weights_are_let_go_after_an_error() -> None:
    policy, obs = made(FIRST, "bf16")
    with pytest.raises(KeyboardInterrupt), torch.inference_mode(), policy.encoder.held():
        policy.act(obs, None)
        raise KeyboardInterrupt
    assert not any("held_weights" in layer.__dict__ for layer in policy.modules())
