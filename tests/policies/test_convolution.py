"""CNNs: equal to plain torch, pixels scaled once, every layout, both precisions, and the gradients of the update."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import ConvLayer, PolicyConfig
from gymnast.errors import ConfigError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.convolution import ConvNet, _folded, _folds, convolve, image_shape, is_image
from gymnast.policies.encoders import Encoder, reads_images
from gymnast.policies.flat import FlatParameters

STACKED = spaces.Box(0, 255, (4, 84, 84), np.uint8)
SMALL = spaces.Box(0, 255, (3, 40, 44), np.uint8)
LAYERS = [ConvLayer(channels=6, kernel=4, stride=2), ConvLayer(channels=5, kernel=3, stride=1, padding=1)]
ACTIONS = spaces.Discrete(3)


def pixels(space: spaces.Box, n: int = 3, seed: int = 0) -> Tensor:
    """Random images."""
    return torch.randint(0, 256, (n, *space.shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def net(config: PolicyConfig, space: spaces.Box, seed: int = 0) -> ConvNet:
    """A CNN with biases that are not zero."""
    made = ConvNet(config, space)
    made.initialise("torch", torch.Generator().manual_seed(seed))
    return made


# ---- the numbers -----------------------------------------------------------------------------------------------------


def test_nature_is_the_network_of_the_paper() -> None:
    ours = net(PolicyConfig(cnn="nature", precision="float32"), STACKED)
    plain = nn.Sequential(
        *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(3136, 512), nn.ReLU()),
    )
    plain.load_state_dict(dict(zip(plain.state_dict(), ours.state_dict().values(), strict=True)))
    images = pixels(STACKED)
    with torch.no_grad():
        features, expected = ours(images), plain(images.float() / 255.0)
    assert features.shape == (3, 512) and float(expected.max()) > 0.03
    torch.testing.assert_close(features, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cnn", ["nature", "impala", LAYERS], ids=["nature", "impala", "layers"])
def test_pixels_are_scaled_exactly_once(cnn: Any) -> None:
    ours = net(PolicyConfig(cnn=cnn, precision="float32"), SMALL)
    images = pixels(SMALL)
    before = images.clone()
    with torch.no_grad():
        torch.testing.assert_close(ours(images), ours(images.float() / 255.0), rtol=1e-5, atol=1e-6)
        white = torch.full((1, *SMALL.shape), 255, dtype=torch.uint8)
        torch.testing.assert_close(ours(white), ours(torch.ones(1, *SMALL.shape)), rtol=1e-5, atol=1e-6)
        assert not torch.allclose(ours(white), ours(torch.full((1, *SMALL.shape), 255.0)), rtol=0.1)
    assert torch.equal(images, before)  # what the rollout stores stays as it is


@pytest.mark.parametrize("cnn", ["nature", "impala", LAYERS], ids=["nature", "impala", "layers"])
def test_the_background_is_zero(cnn: Any) -> None:
    ours = net(PolicyConfig(cnn=cnn, precision="float32", background=87), SMALL)
    images = pixels(SMALL)
    before = images.clone()
    with torch.no_grad():
        expected = ours((images.float() - 87.0) / 255.0)  # floats are taken as they are
        torch.testing.assert_close(ours(images), expected, rtol=1e-5, atol=1e-6)
    for _ in range(2):  # the second time in memory that is there already
        torch.testing.assert_close(ours.run(images)[0], expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(images, before)


def test_every_layout_is_the_same_picture() -> None:
    stack, height, width = 4, 40, 44
    frames = pixels(spaces.Box(0, 255, (stack, height, width, 3), np.uint8))
    first = frames.permute(0, 1, 4, 2, 3).reshape(3, stack * 3, height, width)
    last = first.permute(0, 2, 3, 1).contiguous()
    config = PolicyConfig(cnn="nature", precision="float32")
    features = []
    for images in (first, last, frames):
        shape = tuple(images.shape[1:])
        assert image_shape(shape) == (stack * 3, height, width)
        made = net(config, spaces.Box(0, 255, shape, np.uint8))
        with torch.no_grad():
            features.append(made(images))
    torch.testing.assert_close(features[1], features[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(features[2], features[0], rtol=1e-5, atol=1e-6)
    with torch.no_grad():  # and not because everything looks alike
        assert not torch.allclose(
            net(config, spaces.Box(0, 255, first.shape[1:], np.uint8))(first.flip(1)), features[0]
        )


@pytest.mark.parametrize(("channels", "kernel", "stride", "size"), [(4, 8, 4, (84, 84)), (3, 4, 2, (40, 44))])
def test_the_folded_layer_is_the_plain_convolution(channels: int, kernel: int, stride: int, size: tuple) -> None:
    layer = nn.Conv2d(channels, 7, kernel, stride)
    images = torch.rand(2, channels, *size, generator=torch.Generator().manual_seed(0)) * 255
    assert _folds(layer, images)
    with torch.no_grad():
        torch.testing.assert_close(_folded(images, layer, 1 / 255), convolve(images, layer, 1 / 255))
        torch.testing.assert_close(_folded(images, layer, 1 / 255), layer(images / 255), rtol=1e-4, atol=1e-5)
    gradients = []
    for result in (_folded(images, layer, 1.0), layer(images)):
        layer.zero_grad()
        result.square().mean().backward()
        gradients.append(layer.weight.grad.clone())
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (nn.Conv2d(4, 8, 8, 4), (84, 84)),
        (nn.Conv2d(3, 5, (3, 4), (1, 2), padding=(1, 0)), (11, 14)),
        (nn.Conv2d(4, 8, 8, 4), (84, 86)),
        (nn.Conv2d(4, 8, 6, 4), (84, 84)),
        (nn.Conv2d(4, 8, 8, 4, padding=2), (84, 84)),
    ],
    ids=["nature", "unlike sides", "picture", "kernel", "padded"],
)
def test_columns_side_by_side_are_the_plain_convolution(layer: nn.Conv2d, size: tuple[int, int]) -> None:
    images = torch.rand(2, layer.in_channels, *size, generator=torch.Generator().manual_seed(0))
    results = []
    for laid_out in (images, images.contiguous(memory_format=torch.channels_last)):
        for function in (layer, lambda x: convolve(x, layer)):
            x = laid_out.clone().requires_grad_()
            layer.zero_grad()
            y = function(x)
            y.square().sum().backward()
            assert layer.bias is not None
            results.append((y.detach(), x.grad, layer.weight.grad, layer.bias.grad))
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (nn.Conv2d(4, 8, 3, 1), (84, 84)),
        (nn.Conv2d(4, 8, 8, 4, padding=1), (84, 84)),
        (nn.Conv2d(4, 8, 7, 4), (84, 84)),
        (nn.Conv2d(4, 8, 8, 4), (84, 86)),
    ],
    ids=["stride 1", "padded", "kernel", "picture"],
)
def test_what_cannot_be_folded(layer: nn.Conv2d, size: tuple[int, int]) -> None:
    assert not _folds(layer, torch.zeros(1, 4, *size))


def test_impala_is_its_plain_form() -> None:
    ours = net(PolicyConfig(cnn="impala", precision="float32"), SMALL)
    images = pixels(SMALL)
    relu = nn.functional.relu
    with torch.no_grad():
        x = images.float() / 255.0
        for stage in ours.body:
            x = nn.functional.max_pool2d(stage.entry(x), 3, stride=2, padding=1)
            for first, second in (stage.blocks[:2], stage.blocks[2:]):
                x = x + second(relu(first(relu(x))))
        expected = relu(ours.linear(relu(x).flatten(1)))
        assert x.shape == (3, 32, 5, 6)
        torch.testing.assert_close(ours(images), expected, rtol=1e-4, atol=1e-5)
    assert expected.shape == (3, 256)
    assert [stage.entry.out_channels for stage in ours.body] == [16, 32, 32]


# ---- what is built ---------------------------------------------------------------------------------------------------


def test_layers_from_the_config() -> None:
    made = ConvNet(PolicyConfig(cnn=LAYERS, cnn_features=31), SMALL)
    assert [tuple(layer.weight.shape) for layer in made.body] == [(6, 3, 4, 4), (5, 6, 3, 3)]
    assert made(pixels(SMALL)).shape == (3, 31)
    assert ConvNet(PolicyConfig(cnn=LAYERS), SMALL).size == 512
    assert ConvNet(PolicyConfig(cnn="impala", cnn_features=9), SMALL).size == 9


def test_images_that_are_too_small_are_refused_with_what_to_do() -> None:
    small = spaces.Box(0, 255, (35, 60, 3), np.uint8)
    with pytest.raises(ConfigError, match=r"does not fit images of shape \(35, 60, 3\).*36×36 for nature.*impala"):
        Encoder(small, PolicyConfig(cnn="nature"))
    with pytest.raises(ConfigError, match=r"does not fit images 'eye' of shape \(35, 60, 3\)"):
        Encoder(spaces.Dict(eye=small), PolicyConfig(cnn="nature"))
    assert Encoder(spaces.Box(0, 255, (36, 36, 1), np.uint8), PolicyConfig(cnn="nature")).size == 512
    assert Encoder(small, PolicyConfig(cnn="impala")).size == 256


def test_layers_without_an_image_are_refused() -> None:
    with pytest.raises(ConfigError, match="policy.cnn is a list of layers.*has no image"):
        Encoder(spaces.Box(-1, 1, (5,)), PolicyConfig(cnn=LAYERS))


def test_a_network_without_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy\.cnn is an empty list"):
        Encoder(SMALL, PolicyConfig(cnn=[]))


@pytest.mark.parametrize(
    ("space", "auto", "named"),
    [
        (STACKED, True, True),
        (spaces.Box(0, 255, (210, 160, 3), np.uint8), True, True),
        (spaces.Box(0, 255, (4, 84, 84, 3), np.uint8), True, True),
        (spaces.Box(0, 255, (35, 84, 3), np.uint8), False, True),
        (spaces.Box(0, 1, (4, 84, 84), np.float32), False, True),
        (spaces.Box(0, 255, (84, 84), np.uint8), False, False),
        (spaces.Box(0, 255, (128,), np.uint8), False, False),
        (spaces.Discrete(5), False, False),
    ],
)
def test_what_is_read_as_an_image(space: spaces.Space, auto: bool, named: bool) -> None:
    assert is_image(space) == reads_images(space, PolicyConfig()) == auto
    assert reads_images(space, PolicyConfig(cnn="impala")) == named
    assert not reads_images(space, PolicyConfig(cnn="none"))


def test_none_lays_images_out_flat_and_scales_them() -> None:
    images = pixels(SMALL)
    encoder = Encoder(SMALL, PolicyConfig(cnn="none"))
    assert encoder.size == 3 * 40 * 44 and not encoder.learns
    torch.testing.assert_close(encoder(images), images.flatten(1) / 255.0)


def test_orthogonal_initialisation() -> None:
    made = ConvNet(PolicyConfig(cnn="nature"), STACKED)
    made.initialise("orthogonal", torch.Generator().manual_seed(0))
    layers = [*made.body, made.linear]
    assert len(layers) == 4
    for layer in layers:
        weight = layer.weight.detach().flatten(1)
        assert weight.shape[0] <= weight.shape[1]
        torch.testing.assert_close(weight @ weight.T, 2.0 * torch.eye(len(weight)), rtol=0, atol=1e-4)
        assert (layer.bias == 0).all()


def test_initialisation_follows_its_generator() -> None:
    def weights(seed: int, init: str) -> Tensor:
        policy = ActorCritic(
            PolicyConfig(cnn="impala", init=init), SMALL, ACTIONS, generator=torch.Generator().manual_seed(seed)
        )
        return FlatParameters(policy).values

    for init in ("orthogonal", "torch"):
        torch.manual_seed(1)  # the global generator plays no part
        first = weights(0, init)
        torch.manual_seed(2)
        assert torch.equal(first, weights(0, init)) and not torch.equal(first, weights(1, init))


# ---- observations with several parts ---------------------------------------------------------------------------------

PARTS = spaces.Dict(
    {
        "front": SMALL,
        "speed": spaces.Box(-1, 1, (2,)),
        "rear.eye": spaces.Box(0, 255, (40, 44, 3), np.uint8),
        "gear": spaces.Discrete(3),
    }
)


def parts_of(n: int = 3) -> dict[str, Tensor]:
    """Images and the rest, in the order of the space."""
    return {
        key: {
            "front": pixels(SMALL, n),
            "rear.eye": pixels(PARTS["rear.eye"], n, seed=1),
            "gear": torch.arange(n) % 3,
            "speed": torch.linspace(-1, 1, 2 * n).view(n, 2),
        }[key]
        for key in PARTS.spaces
    }


def test_images_beside_a_vector() -> None:
    encoder = Encoder(PARTS, PolicyConfig(cnn_features=16))
    obs = parts_of()
    rest = torch.cat((nn.functional.one_hot(obs["gear"], 3).float(), obs["speed"]), -1)
    with torch.no_grad():
        x = encoder(obs)
        images = [encoder.images[name](obs[key]) for key, name in (("front", "front"), ("rear.eye", "rear_eye"))]
        torch.testing.assert_close(x, torch.cat((*images, rest), -1))
    assert x.shape == (3, encoder.size) == (3, 37)


def test_the_order_of_an_observation_plays_no_part() -> None:
    encoder = Encoder(PARTS, PolicyConfig(cnn=LAYERS, cnn_features=16))
    obs = parts_of()
    turned = {key: obs[key] for key in reversed(obs)}
    with torch.no_grad():
        assert torch.equal(encoder(turned), encoder(obs))
        assert torch.equal(encoder.run(turned)[0], encoder.run(obs)[0])


def test_names_that_torch_has_taken() -> None:
    """Parts may have any name: a module's own attributes, and names that only differ by a dot."""
    small = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    space = spaces.Dict({"type": small, "values": small, "a.b": small, "a_b": spaces.Box(-1, 1, (2,))})
    encoder = Encoder(space, PolicyConfig(cnn=[ConvLayer(channels=2, kernel=3)], cnn_features=4))
    assert (len(encoder.nets), encoder.flat_size, encoder.size) == (3, 2, 14)
    assert encoder({key: torch.zeros(1, *part.shape, dtype=torch.uint8) for key, part in space.items()}).shape == (
        1,
        14,
    )


def test_only_the_vector_is_normalised() -> None:
    encoder = Encoder(PARTS, PolicyConfig(normalize_obs=True, cnn_features=16))
    assert encoder.norm is not None
    obs = parts_of()
    flat = encoder.flat(obs)
    assert flat.shape == (3, 5)
    with torch.no_grad():
        before = encoder(obs)
        encoder.norm.update(flat + 0.25)
        after = encoder(obs)
    assert torch.equal(before[:, :-2], after[:, :-2])
    assert not torch.isclose(before[:, -2:], after[:, -2:]).any()
    assert Encoder(SMALL, PolicyConfig(normalize_obs=True)).norm is None


# ---- gradients and precision -----------------------------------------------------------------------------------------


def policy_for(space: spaces.Space, **config: Any) -> tuple[ActorCritic, FlatParameters]:
    """A policy away from its near-uniform start."""
    policy = ActorCritic(PolicyConfig(**{"precision": "float32", "cnn_features": 16, **config}), space, ACTIONS)
    flat = FlatParameters(policy)
    noise = torch.randn(flat.values.shape, generator=torch.Generator().manual_seed(1))
    flat.values.add_(noise * 0.02)
    return policy, flat


HEADS: dict[str, dict[str, Any]] = {
    "linear heads": {"hidden": []},
    "own layers": {"hidden": [8, 6]},
    "unlike layers": {"hidden": [8], "critic_hidden": [5, 4]},
    "shared trunk": {"hidden": [8, 6], "shared_trunk": True},
    "shared trunk without layers": {"hidden": [], "shared_trunk": True},
    "layer norm": {"hidden": [8], "layer_norm": True},
    "shared trunk with layer norm": {"hidden": [8], "shared_trunk": True, "layer_norm": True},
}


@pytest.mark.parametrize("cnn", ["nature", "impala", LAYERS], ids=["nature", "impala", "layers"])
@pytest.mark.parametrize("heads", HEADS)
def test_the_updates_gradient_is_autograds(heads: str, cnn: Any) -> None:
    for space, obs in ((SMALL, pixels(SMALL)), (PARTS, parts_of())):
        policy, flat = policy_for(space, cnn=cnn, **HEADS[heads])
        generator = torch.Generator().manual_seed(2)
        d_params, d_value = torch.randn(3, 3, generator=generator), torch.randn(3, generator=generator)

        params, predicted, _ = policy(obs)
        value = predicted["value"]
        ((params * d_params).sum() + value @ d_value).backward()
        expected = flat.grads.clone()
        assert (expected != 0).float().mean() > 0.3

        flat.grads.zero_()
        with torch.inference_mode(policy.by_hand), torch.no_grad():
            fast, fast_heads, tape = policy.run(obs)
            policy.push_back(tape, d_params, {"value": d_value})
        torch.testing.assert_close(fast, params.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(fast_heads["value"], value.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(flat.grads, expected, rtol=1e-4, atol=1e-5)


def test_acting_valuing_and_learning_see_the_same() -> None:
    for shared in (False, True):
        policy, _ = policy_for(SMALL, hidden=[8], shared_trunk=shared)
        images = pixels(SMALL)
        with torch.inference_mode():
            acted = policy.act(images, None)
            params, heads, _ = policy.run(images.clone())
            torch.testing.assert_close(acted["params"], params)
            torch.testing.assert_close(acted["value"], heads["value"])
            torch.testing.assert_close(policy.values(images), acted["value"])
        assert policy.shared  # the CNN is, so values come with the actions


def test_a_policy_without_a_critic() -> None:
    policy = ActorCritic(PolicyConfig(hidden=[], cnn_features=16), SMALL, ACTIONS, critic=False)
    flat = FlatParameters(policy)
    with torch.no_grad():
        params, heads, tape = policy.run(pixels(SMALL))
        policy.push_back(tape, torch.ones_like(params), {})
    assert heads == {} and not policy.shared
    assert policy.encoder.nets[0].body[0].weight.grad.abs().max() > 0
    assert torch.isfinite(flat.grads).all()


@pytest.mark.parametrize("cnn", ["nature", "impala"])
def test_bf16_is_close_and_its_weights_stay_float32(cnn: str) -> None:
    precise, flat = policy_for(SMALL, cnn=cnn, hidden=[])
    rough, rough_flat = policy_for(SMALL, cnn=cnn, hidden=[], precision="bf16")
    assert torch.equal(flat.values, rough_flat.values)
    images = pixels(SMALL, 16)
    with torch.no_grad():
        features, rough_features = precise.encoder(images), rough.encoder(images)
    assert rough_features.dtype == torch.float32
    error = (rough_features - features).norm() / features.norm()
    assert 0 < float(error) < 0.03
    for policy in (precise, rough):
        with torch.no_grad():
            params, _, tape = policy.run(images)
            d_params = torch.ones_like(params) * torch.tensor([1.0, -1.0, 0.5])
            policy.push_back(tape, d_params, {"value": torch.ones(16)})
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in rough.parameters())
    cosine = nn.functional.cosine_similarity(flat.grads, rough_flat.grads, dim=0)
    assert float(cosine) > 0.99
    assert math.isclose(float(flat.grads.norm()), float(rough_flat.grads.norm()), rel_tol=0.05)
