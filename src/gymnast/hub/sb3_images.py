"""NatureCNN of Stable-Baselines3 (CnnPolicy, and image parts of MultiInputPolicy) as our `ConvNet`."""

from __future__ import annotations

import math

import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.config.schema import PolicyConfig
from gymnast.errors import CheckpointError
from gymnast.hub.saved_spaces import parts_of
from gymnast.hub.sb3 import EXTRACTOR, Sb3Model
from gymnast.policies.convolution import NATURE, image_shape
from gymnast.policies.encoders import ALONE, reads_images

COPIES = ("pi_features_extractor.", "vf_features_extractor.")
"""Further names of the same tensors, or a network of its own for the critic."""
_LAYERS = {"cnn.0": "body.0", "cnn.2": "body.1", "cnn.4": "body.2", "linear.0": "linear"}


def drop_copies(left: dict[str, Tensor], where: str) -> None:
    """Take the further names of the extractor out of `left`; refuse a critic with an extractor of its own."""
    for prefix in COPIES:
        for name in [name for name in left if name.startswith(prefix)]:
            copy, own = left.pop(name), left.get(EXTRACTOR + name.removeprefix(prefix))
            if own is None or not copy.equal(own):
                raise CheckpointError(
                    f"{where} has one CNN for the actor and another for the critic (share_features_extractor=False), which "
                    "is not supported: here they share it."
                )


def take_cnns(left: dict[str, Tensor], model: Sb3Model, space: spaces.Space) -> tuple[dict[str, Tensor], int]:
    """Our tensors of the CNNs in `left`, which are taken out of it, and the features of each."""
    tensors: dict[str, Tensor] = {}
    sizes = set()
    for key in model.images:
        if key is None:
            prefix = EXTRACTOR
        else:
            prefix = f"{EXTRACTOR}extractors.{key}."
        cnn = {
            f"{ours}.{what}": left.pop(f"{prefix}{theirs}.{what}", torch.empty(0))
            for theirs, ours in _LAYERS.items()
            for what in ("weight", "bias")
        }
        _check_layers(cnn, _shape(space, key, model), model.where)
        cnn["body.0.weight"] = cnn["body.0.weight"] * model.pixel_scale(parts_of(model.observation_space)[key])
        tensors |= {f"encoder.images.{key or ALONE}.{name}": tensor.float() for name, tensor in cnn.items()}
        sizes.add(len(cnn["linear.bias"]))
    if len(sizes) != 1:
        raise CheckpointError(f"{model.where} has CNNs of different sizes for its images, which is not supported.")
    return tensors, sizes.pop()


def _shape(space: spaces.Space, key: str | None, model: Sb3Model) -> tuple[int, ...]:
    shape = getattr(parts_of(space).get(key), "shape", None) or ()
    if len(shape) not in (3, 4):
        raise CheckpointError(f"{model.where} does not fit its own observation space {model.observation_space}.")
    return tuple(shape)


def _check_layers(cnn: dict[str, Tensor], shape: tuple[int, ...], where: str) -> None:
    """Refuse layers other than those of Nature's CNN for images of this shape."""
    channels, *sides = image_shape(shape)
    first = cnn["body.0.weight"]
    if first.dim() == 4 and first.shape[1] != channels:
        raise CheckpointError(
            f"{where} has a CNN for {first.shape[1]} channels, but images of shape {shape} are read as {channels} channels."
        )
    expected: dict[str, tuple[int, ...]] = {}
    for i, layer in enumerate(NATURE):
        expected[f"body.{i}"] = (layer.channels, channels, layer.kernel, layer.kernel)
        channels, sides = layer.channels, [(side - layer.kernel) // layer.stride + 1 for side in sides]
    features = 0
    if cnn["linear.bias"].dim():
        features = len(cnn["linear.bias"])
    expected["linear"] = (features, channels * math.prod(sides))
    for name, size in expected.items():
        weight, bias = cnn[f"{name}.weight"], cnn[f"{name}.bias"]
        if weight.shape != size or bias.shape != size[:1] or not features:
            raise CheckpointError(
                f"{where} is damaged: the layer '{name}' of its CNN has the shape {list(weight.shape)}, expected {list(size)}."
            )


def cnn_setting(model: Sb3Model, space: spaces.Space) -> str:
    """The `policy.cnn` under which our encoder reads the same parts by a CNN as theirs does."""
    for setting in ("nature", "auto"):
        config = PolicyConfig(cnn=setting)
        if all(reads_images(part, config) == (key in model.images) for key, part in parts_of(space).items()):
            return setting
    parts = parts_of(space)
    seen = [str(key) for key in parts if key in model.images]
    flat = [str(key) for key in parts if key not in model.images]
    raise CheckpointError(
        f"{model.where} reads {', '.join(seen)} by a CNN and lays {', '.join(flat)} out flat, which is not supported: here all "
        "images have a CNN, or none."
    )
