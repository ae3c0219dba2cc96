"""What an image policy sees and looks at: its inputs, the maps of every layer, Grad-CAM and saliency.

Grad-CAM is that of Selvaraju et al. 2017 (arXiv 1610.02391): the last convolution's maps, weighted by the mean gradient of what
is asked about, and cut off at zero. Saliency is the size of the gradient at each pixel (Simonyan et al. 2014, arXiv 1312.6034).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gymnast.envs.spaces import stack
from gymnast.evaluation.evaluate import tensors
from gymnast.policies.base import Policy
from gymnast.policies.convolution import ConvNet, channels_first, image_shape

About = Literal["action", "value"]
CHUNK = 64
"""Observations that are looked at together."""
MOST_MAPS = 32
"""Maps of a layer that are shown."""
FILTER_COLUMNS = 4
GAP = 1
"""Pixels between two tiles."""
Images = np.ndarray


def image_net(policy: Policy) -> ConvNet | None:
    """The CNN that reads the observation's image; None for policies without one."""
    nets = list(getattr(policy.encoder, "nets", ()))
    if not nets:
        return None
    net: ConvNet = nets[0]
    return net


def inputs(policy: Policy, observations: Sequence[Any]) -> Iterator[Images]:
    """The channels of each image side by side, [H, C · W], the newest of a stack last."""
    for obs in observations:
        image = channels_first(torch.from_numpy(_image_of(policy, obs))[None], _shape(policy))[0]
        yield tiled(image.numpy(), rows=1)


def filters(net: ConvNet) -> Images:
    """The first layer's weights, one tile per filter and input channel; grey is zero."""
    layer = next(module for module in net.modules() if isinstance(module, torch.nn.Conv2d))
    weight = layer.weight.detach()[:MOST_MAPS]
    largest = weight.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)
    shades = (127.5 * (1 + weight / largest)).round().to(torch.uint8).numpy()
    tiles = [np.pad(tiled(one, rows=1), ((0, GAP), (0, 4 * GAP))) for one in shades]
    tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % FILTER_COLUMNS)
    columns = np.array_split(tiles, FILTER_COLUMNS)
    return np.concatenate([np.concatenate(list(column)) for column in columns], axis=1)


def activations(policy: Policy, observations: Sequence[Any]) -> Iterator[list[Images]]:
    """For each observation one picture per layer: its maps as tiles, each layer as bright as its largest value."""
    net = image_net(policy)
    assert net is not None
    for chunk in _chunks(observations):
        with torch.no_grad(), net.watched() as maps:
            policy(tensors(stack(list(chunk), policy.encoder.space)))
        for place in range(len(chunk)):
            yield [tiled(_shades(layer[place, :MOST_MAPS]), rows=4) for layer in maps]


def cam(policy: Policy, observations: Sequence[Any], actions: Sequence[Any], about: About) -> Iterator[Images]:
    """Where the last layer found what speaks for the chosen action, or for the value: [H, W] from 0 to 255."""
    net = image_net(policy)
    assert net is not None
    _, height, width = image_shape(net.shape)
    for chunk, chosen in zip(_chunks(observations), _chunks(actions)):
        with torch.enable_grad(), net.watched() as maps:
            score = _score(policy, tensors(stack(list(chunk), policy.encoder.space)), chosen, about)
            gradient = torch.autograd.grad(score, maps[-1])[0]
        weights = gradient.mean(dim=(2, 3), keepdim=True)
        heat = F.relu((weights * F.relu(maps[-1].detach())).sum(1, keepdim=True))
        heat = F.interpolate(heat.float(), (height, width), mode="bilinear", align_corners=False)[:, 0]
        yield from _shades(heat, each=True)


def saliency(policy: Policy, observations: Sequence[Any], actions: Sequence[Any], about: About) -> Iterator[Images]:
    """How much each pixel matters: [H, W] from 0 to 255."""
    net = image_net(policy)
    assert net is not None
    for chunk, chosen in zip(_chunks(observations), _chunks(actions)):
        obs = tensors(stack(list(chunk), policy.encoder.space))
        image = (_picture(policy, obs).float() - net.background) / 255.0
        image.requires_grad_()
        with torch.enable_grad():
            score = _score(policy, _with_picture(policy, obs, image), chosen, about)
            gradient = torch.autograd.grad(score, image)[0]
        size = channels_first(gradient, net.shape).abs().amax(1)
        yield from _shades(size, each=True)


def tiled(images: Images, *, rows: int) -> Images:
    """[K, H, W] in so many rows, with a gap between two."""
    count, height, width = images.shape
    columns = -(-count // rows)
    canvas = np.zeros((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP), np.uint8)
    for place, image in enumerate(images):
        top, left = (place // columns) * (height + GAP), (place % columns) * (width + GAP)
        canvas[top : top + height, left : left + width] = image
    return canvas


def coloured(heat: Images) -> Images:
    """Heat as RGB from black over red and yellow to white, to be laid over a picture."""
    level = heat.astype(np.float32) / 255.0 * 3.0
    channels = [np.clip(level - shift, 0.0, 1.0) for shift in (0.0, 1.0, 2.0)]
    return (255 * np.stack(channels, -1)).astype(np.uint8)


def _score(policy: Policy, obs: Any, actions: Sequence[Any], about: About) -> Tensor:
    """What is asked about, summed over the batch: a gradient of the sum is that of each observation."""
    params, heads, _ = policy(obs)
    if about == "value":
        value: Tensor = heads["value"]
        return value.sum()
    chosen = torch.as_tensor(np.asarray(actions), dtype=policy.distribution.action_dtype)
    chosen = chosen.reshape(len(actions), *policy.distribution.action_shape)
    log_prob: Tensor = policy.distribution.evaluate(params, chosen)[0]
    return log_prob.sum()


def _shades(values: Tensor, *, each: bool = False) -> Images:
    """0 to 255, by the largest value of all, or of each picture."""
    values = F.relu(values.detach().float())
    largest = values.amax(dim=(1, 2), keepdim=True) if each else values.amax()
    return (255 * values / largest.clamp_min(1e-12)).round().to(torch.uint8).numpy()


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


def _shape(policy: Policy) -> tuple[int, ...]:
    net = image_net(policy)
    assert net is not None
    return net.shape


def _key(policy: Policy) -> str:
    return str(policy.encoder.pictured[0])


def _image_of(policy: Policy, obs: Any) -> np.ndarray:
    return np.asarray(obs[_key(policy)] if isinstance(obs, dict) else obs)


def _picture(policy: Policy, obs: Any) -> Tensor:
    found: Tensor = obs[_key(policy)] if isinstance(obs, dict) else obs
    return found


def _with_picture(policy: Policy, obs: Any, image: Tensor) -> Any:
    if isinstance(obs, dict):
        return {**obs, _key(policy): image}
    return image
