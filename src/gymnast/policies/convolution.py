"""Convolutional networks: from uint8 images to a vector of features that actor and critic share.

Images stay uint8 until they reach the device. They are scaled to [0, 1] exactly once, and for nothing: the first layer's
weights are divided by 255 instead of every pixel. `policy.background` is subtracted before. Arithmetic runs in channels-last
memory, in float32 or bf16; the weights that are learned and saved are float32. The backward pass is autograd's behind the two
calls that `dense` has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import ConvLayer, PolicyConfig
from gymnast.errors import ConfigError

NATURE = (
    ConvLayer(channels=32, kernel=8, stride=4),
    ConvLayer(channels=64, kernel=4, stride=2),
    ConvLayer(channels=64, kernel=3, stride=1),
)
IMPALA_CHANNELS = (16, 32, 32)
FEATURES = {"nature": 512, "impala": 256}
SMALLEST = 36
"""Nature's first three layers need so many pixels in each direction."""


def is_image(space: spaces.Space) -> bool:
    """Whether `auto` reads this part of an observation by a CNN."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (3, 4):
        return False
    _, height, width = image_shape(space.shape)
    return min(height, width) >= SMALLEST


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Channels, height and width of [C, H, W], [H, W, C] or stacked [S, H, W, C] images; the smaller end is the channels."""
    if len(shape) == 4:
        stack, height, width, channels = shape
        return stack * channels, height, width
    first, second, third = shape
    if first <= third:
        return (first, second, third)
    return (third, first, second)


def channels_first(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A batch of images as [B, C, H, W]; a view where strides allow it."""
    if len(shape) == 4:
        return x.permute(0, 1, 4, 2, 3).flatten(1, 2)
    if shape[0] <= shape[2]:
        return x
    return x.permute(0, 3, 1, 2)


class ConvNet(nn.Module):
    """One image [B, …] → features [B, size], ReLU at the end."""

    def __init__(self, config: PolicyConfig, space: spaces.Box, name: str = "") -> None:
        super().__init__()
        self.shape = tuple(space.shape)
        if not config.cnn:
            raise ConfigError("policy.cnn is an empty list: give it layers, or name a network (nature, impala, none).")
        kind = config.cnn if isinstance(config.cnn, str) else "layers"
        self.size = config.cnn_features or FEATURES.get(kind, 512)
        channels, height, width = image_shape(self.shape)
        self.body: nn.ModuleList
        if kind == "impala":
            stages = [_ImpalaStage(a, b) for a, b in zip((channels, *IMPALA_CHANNELS), IMPALA_CHANNELS)]
            self.body = nn.ModuleList(stages)
            for _ in stages:
                height, width = (height + 1) // 2, (width + 1) // 2
            channels = IMPALA_CHANNELS[-1]
        else:
            layers = NATURE if isinstance(config.cnn, str) else config.cnn
            self.body = nn.ModuleList()
            for layer in layers:
                self.body.append(nn.Conv2d(channels, layer.channels, layer.kernel, layer.stride, layer.padding))
                channels = layer.channels
                height, width = (
                    (side + 2 * layer.padding - layer.kernel) // layer.stride + 1 for side in (height, width)
                )
                if min(height, width) < 1:
                    what = f"'{name}' " if name else ""
                    raise ConfigError(
                        f"policy.cnn does not fit images {what}of shape {self.shape}: its layers need larger ones "
                        f"({SMALLEST}×{SMALLEST} for nature). Resize them (env.wrappers), or set policy.cnn to impala, "
                        "to smaller layers or to none."
                    )
        self.linear = nn.Linear(channels * height * width, self.size)
        self.dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
        self.background = config.background
        self._kept: Tensor | None = None
        self._watched: list[Tensor] | None = None

    def initialise(self, init: str, generator: torch.Generator) -> None:
        """Orthogonal with gain √2 and zero bias, or torch's own."""
        with torch.no_grad():
            for layer in self.modules():
                if not isinstance(layer, (nn.Conv2d, nn.Linear)):
                    continue
                if init == "orthogonal":
                    nn.init.orthogonal_(layer.weight, math.sqrt(2.0), generator=generator)
                    layer.bias.zero_()  # type: ignore[union-attr]
                else:
                    bound = 1.0 / math.sqrt(layer.weight[0].numel())
                    layer.weight.uniform_(-bound, bound, generator=generator)
                    layer.bias.uniform_(-bound, bound, generator=generator)  # type: ignore[union-attr]

    def forward(self, x: Tensor, *, keep: bool = False) -> Tensor:
        """Features [B, size] in float32. `keep` is for calls whose gradients are taken before the next one."""
        if x.dtype == torch.uint8:
            scale, zero = (1.0 / 255.0, self.background)
        else:
            scale, zero = (1.0, 0.0)
        x = channels_first(x, x.shape[1:])  # as the env gives them, or `packed`
        layers = list(self.body)
        if x.is_cuda and _folds(layers[0], x):
            x = F.relu_(_folded(_less(x.to(self.dtype), zero), layers.pop(0), scale))
            scale = 1.0
        else:
            x = _less(self._converted(x, keep=keep), zero)
        for layer in layers:
            if isinstance(layer, _ImpalaStage):
                x = layer(x, scale)
            else:
                x = convolve(x, layer, scale)
                if layer is not layers[-1]:
                    x = F.relu_(x)
            scale = 1.0
            if self._watched is not None:
                self._watched.append(x)
        # The last ReLU comes after the change of layout: its gradient then lies as its result does, and costs a tenth.
        x = F.relu(x.flatten(1))
        return F.relu_(F.linear(x, *_weights(self.linear, self.dtype))).float()

    def rectified(self, x: Tensor) -> list[Tensor]:
        """What each layer (of IMPALA's network: each stage) gives behind its ReLU, for those who look on."""
        scale, zero = (1.0 / 255.0, self.background) if x.dtype == torch.uint8 else (1.0, 0.0)
        x = channels_first(x, x.shape[1:])
        x = _less(x.to(self.dtype, memory_format=torch.channels_last), zero)
        found: list[Tensor] = []
        for layer in self.body:
            x = layer(x, scale) if isinstance(layer, _ImpalaStage) else F.relu(convolve(x, layer, scale))
            scale = 1.0
            found.append(F.relu(x))
        features = F.linear(found[-1].flatten(1), *_weights(self.linear, self.dtype))
        return [*found, F.relu(features)]

    def _converted(self, x: Tensor, *, keep: bool) -> Tensor:
        """The images in the arithmetic's type and layout."""
        if x.is_cuda or x.dtype == self.dtype:
            return x.to(self.dtype, memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)  # bytes are turned faster than what they become
        if not keep:
            return x.to(self.dtype)
        # The same memory for every minibatch: tens of megabytes from the system each time take longer than filling them.
        if self._kept is None or len(self._kept) < len(x) or self._kept.shape[1:] != x.shape[1:]:
            with torch.inference_mode(False):
                self._kept = torch.empty_like(x, dtype=self.dtype)
        return self._kept[: len(x)].copy_(x)

    @contextmanager
    def watched(self) -> Iterator[list[Tensor]]:
        """The maps of every layer of the next call, for whoever looks into the network; the last ones before their ReLU."""
        self._watched = []
        try:
            yield self._watched
        finally:
            self._watched = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the weights stay as they are, turn them into the arithmetic's type and layout once and not at every call.

        For acting: nothing is learned from what is computed meanwhile.
        """
        layers = [layer for layer in self.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
        for layer in layers:
            layer.__dict__[_HELD] = {}
        try:
            yield
        finally:
            for layer in layers:
                del layer.__dict__[_HELD]

    def packed(self, x: Tensor) -> Tensor:
        """The same images as [B, H, W, C], which `forward` reads too: turned once where they are read many times on a CPU."""
        images = channels_first(x, self.shape)
        if x.is_cuda or images.shape[1] >= images.shape[2]:
            return x
        return images.permute(0, 2, 3, 1).contiguous()

    def laid_out(self, images: np.ndarray) -> np.ndarray:
        """Zeros of the type and shape [T, N, …] of these images, in memory of which `packed` is a view."""
        channels, height, _ = image_shape(self.shape)
        has_channels_last = len(self.shape) == 3 and self.shape[0] > self.shape[2]
        if channels >= height or has_channels_last:
            return images
        turned = np.moveaxis(images, 2, 4)  # [C, H, W] as [H, W, C], stacked [S, H, W, C] as [H, W, S, C]
        return np.moveaxis(np.zeros(turned.shape, images.dtype), 4, 2)

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features, and the tape that `backprop` needs."""
        with torch.enable_grad():
            y = self.forward(x, keep=True)
        return y.detach(), y

    def backprop(self, tape: Tensor, gradient: Tensor) -> None:
        """Add the parameters' gradients to `.grad`."""
        # From a scalar: given a gradient, torch imports sympy (a second, tens of megabytes) to compare the two shapes.
        with torch.enable_grad():
            total = (tape * gradient).sum()
        torch.autograd.backward(total)


def _less(x: Tensor, zero: float) -> Tensor:
    if zero:
        return x.sub_(zero)
    return x


def convolve(x: Tensor, layer: Any, scale: float = 1.0) -> Tensor:
    """The layer in the type and memory format of `x`; the input counts `scale` times."""
    weight, bias = _weights(layer, x.dtype, scale)
    rows, columns = layer.stride
    if (
        not x.is_cuda
        and columns > 1
        and layer.kernel_size[1] % columns == x.shape[3] % columns == layer.padding[1] == 0
    ):
        x, weight, columns = _side_by_side(x, columns), _side_by_side(weight, columns), 1
    return F.conv2d(x, weight, bias, (rows, columns), layer.padding)


def _side_by_side(x: Tensor, n: int) -> Tensor:
    """The channels of `n` columns as those of one: a view of channels-last memory.

    With as many more channels and no horizontal stride, a CPU computes Nature's gradients faster: a tenth to a fifth.
    """
    batch, channels, height, width = x.shape
    return x.permute(0, 2, 3, 1).reshape(batch, height, width // n, n * channels).permute(0, 3, 1, 2)


_HELD = "held_weights"


def _weights(layer: Any, dtype: torch.dtype, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """The layer's weight, times `scale`, and bias in this type; the weight of a convolution in channels-last memory."""
    held = layer.__dict__.get(_HELD)
    if held is not None and (dtype, scale) in held:
        kept: tuple[Tensor, Tensor] = held[dtype, scale]
        return kept
    if scale == 1.0:
        weight = layer.weight
    else:
        weight = layer.weight * scale
    if weight.dim() == 4:
        layout = torch.channels_last
    else:
        layout = torch.preserve_format
    made = weight.to(dtype, memory_format=layout), layer.bias.to(dtype)
    if held is not None:
        held[dtype, scale] = made
    return made


def _folds(layer: Any, x: Tensor) -> bool:
    """Whether a convolution with stride s is one with stride 1 over blocks of s×s pixels."""
    if not isinstance(layer, nn.Conv2d) or layer.stride[0] == 1 or layer.padding != (0, 0):
        return False
    stride = layer.stride[0]
    return all(side % stride == 0 for side in (layer.kernel_size[0], x.shape[2], x.shape[3]))


def _folded(x: Tensor, layer: Any, scale: float) -> Tensor:
    """The same convolution over blocks of pixels as channels: a GPU's matrix units are idle with the few channels of a picture.

    Half the time of a whole update of Nature's network on an H200; no gain on a CPU.
    """
    stride = layer.stride[0]
    weight = F.pixel_unshuffle(layer.weight * scale, stride).to(x.dtype, memory_format=torch.channels_last)
    x = F.pixel_unshuffle(x, stride).contiguous(memory_format=torch.channels_last)
    return F.conv2d(x, weight, layer.bias.to(x.dtype))


class _ImpalaStage(nn.Module):
    """Convolution, max-pool, two residual blocks (Espeholt et al. 2018, the deep network)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.entry = nn.Conv2d(n_in, n_out, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(n_out, n_out, 3, padding=1) for _ in range(4))

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        x = F.max_pool2d(convolve(x, self.entry, scale), 3, stride=2, padding=1)
        for first, second in ((0, 1), (2, 3)):
            y = convolve(F.relu(x), self.blocks[first])
            x = x + convolve(F.relu_(y), self.blocks[second])
        return x
