"""Model summary (POL-4): the layers of a policy with shapes, parameters and arithmetic, part by part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.policies.activations import ACTIVATIONS
from gymnast.policies.base import Policy
from gymnast.policies.batch_norm import FrozenBatchNorm
from gymnast.policies.convolution import ConvNet, image_shape
from gymnast.policies.dense import DenseChain
from gymnast.policies.encoders import Encoder, flat_size
from gymnast.policies.own import OwnEncoder
from gymnast.policies.recurrent.layers import RecurrentLayers


@dataclass(frozen=True)
class Layer:
    """One row of the summary; shapes are without the batch axis."""

    part: str
    """encoder, memory, trunk, actor, critic or log_std."""
    name: str
    """What it does, e.g. `linear`."""
    input: str
    output: str
    parameters: int = 0
    """Trained numbers."""
    statistics: int = 0
    """Saved numbers that are not trained: running means and variances."""
    flops: int = 0
    """Multiplications and additions per observation."""


@dataclass(frozen=True)
class Summary:
    """All layers of a policy in the order in which data goes through them."""

    observation: str
    action: str
    distribution: str
    layers: list[Layer]
    size: int
    """Bytes of everything that is saved with the policy."""

    @property
    def parameters(self) -> int:
        """Trained numbers in total."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def action_flops(self) -> int:
        """Multiplications and additions for one action; the critic is not needed for it."""
        return sum(layer.flops for layer in self.layers if layer.part != "critic")

    def parts(self) -> dict[str, int]:
        """How many parameters each part has."""
        totals: dict[str, int] = {}
        for layer in self.layers:
            totals[layer.part] = totals.get(layer.part, 0) + layer.parameters
        return totals

    def as_json(self) -> dict[str, Any]:
        """The whole summary as plain data for `--json`."""
        return {
            "observation": self.observation,
            "action": self.action,
            "distribution": self.distribution,
            "layers": [vars(layer) for layer in self.layers],
            "parameters": self.parameters,
            "parameters_by_part": self.parts(),
            "bytes": self.size,
            "flops_per_action": self.action_flops,
        }


def summarise(policy: Policy, action_space: spaces.Space) -> Summary:
    """Describe a policy. Parameters of modules this does not know are counted in rows of their own."""
    layers: list[Layer] = []
    columns = int(np.prod(policy.encoder.space.shape or ()))
    for part, module in policy.named_children():
        if isinstance(module, Encoder):
            layers += _encoder(part, module)
        elif isinstance(module, DenseChain):
            layers += _chain(part, module, columns)
        elif isinstance(module, RecurrentLayers):
            layers += _memory(part, module, columns)
        else:
            layers += _other(part, module)
    for name, parameter in policy.named_parameters(recurse=False):
        layers.append(Layer(name, "free parameter", "–", _shape(parameter.shape), parameter.numel()))
    order = ("encoder", "memory", "trunk", "actor", "log_std", "critic")
    layers.sort(key=lambda layer: order.index(layer.part) if layer.part in order else len(order))
    return Summary(
        observation=str(policy.encoder.space),
        action=str(action_space),
        distribution=type(policy.distribution).__name__,
        layers=layers,
        size=sum(tensor.numel() * tensor.element_size() for tensor in policy.state_dict().values()),
    )


def _encoder(part: str, encoder: Encoder) -> Iterator[Layer]:
    if isinstance(encoder.space, spaces.Dict):
        parts = encoder.space.spaces
    else:
        parts = {"": encoder.space}
    images = dict(zip(encoder.pictured, encoder.nets))
    for key, net in images.items():
        yield from _conv_net(part, net, key)
    flat = {key: space for key, space in parts.items() if key not in images}
    for key, space in flat.items():
        label = f"{_reads(space, encoder.indexed)} {key}".rstrip()
        output = "index" if encoder.indexed else str(flat_size(space))
        yield Layer(part, label, _shape(space.shape or ()), output)
    if len(flat) > 1:
        yield Layer(part, "join", _sum(flat_size(space) for space in flat.values()), str(encoder.flat_size))
    if encoder.norm is not None:
        size = str(encoder.flat_size)
        yield Layer(part, "normalise", size, size, statistics=_saved(encoder.norm), flops=2 * encoder.flat_size)
    if images and len(parts) > 1:
        sizes = [net.size for net in images.values()] + [encoder.flat_size] * bool(flat)
        yield Layer(part, "join", _sum(sizes), str(encoder.size))
    known = [*images.values(), *([] if encoder.norm is None else [encoder.norm])]
    rest = _count(encoder) - sum(_count(module) for module in known)
    if isinstance(encoder, OwnEncoder):
        yield Layer(part, encoder.reference, "–", str(encoder.size), rest)
    elif rest:
        yield Layer(part, "other layers", "–", "–", rest)


def _conv_net(part: str, net: ConvNet, key: str) -> Iterator[Layer]:
    """A row per convolution with its ReLU; one per residual block of IMPALA's network."""
    named = f" {key}" if key else ""
    shape = image_shape(net.shape)
    yield Layer(part, f"image{named}", _shape(net.shape), _shape(shape))
    for module in net.body:
        if isinstance(module, nn.Conv2d):
            row, shape = _convolution(part, module, shape, "relu")
            yield row
            continue
        row, shape = _convolution(part, module.entry, shape)  # type: ignore[arg-type]
        yield row
        channels, height, width = shape
        pooled = channels, (height + 1) // 2, (width + 1) // 2
        n = math.prod(pooled)
        yield Layer(part, "max-pool 3×3, stride 2", _shape(shape), _shape(pooled), flops=8 * n)
        shape = pooled
        blocks = [_convolution(part, module.blocks[i], shape)[0] for i in range(4)]  # type: ignore[index, arg-type]
        for pair in (blocks[:2], blocks[2:]):
            parameters, flops = sum(row.parameters for row in pair), sum(row.flops for row in pair)
            yield Layer(
                part, "residual block, 2 × 3×3", _shape(shape), _shape(shape), parameters, flops=flops + 3 * n
            )  # two ReLUs, one addition
    n, linear = math.prod(shape), net.linear
    last = 0 if isinstance(net.body[-1], nn.Conv2d) else n  # the ReLU behind the last residual block
    yield Layer(part, "linear, relu", str(n), str(net.size), _count(linear), flops=(2 * n + 2) * net.size + last)


Picture = tuple[int, int, int]
"""Channels, height, width."""


def _convolution(part: str, layer: nn.Conv2d, shape: Picture, activation: str = "") -> tuple[Layer, Picture]:
    """Its row, activation included, and the shape that comes out."""
    kernel, stride, padding = layer.kernel_size[0], layer.stride[0], int(layer.padding[0])
    height, width = ((side + 2 * padding - kernel) // stride + 1 for side in shape[1:])
    out = layer.out_channels, height, width
    per_output = 2 * layer.in_channels * kernel**2 + 1 + bool(activation)
    stepped = f", stride {stride}" if stride > 1 else ""
    padded = f", padding {padding}" if padding else ""
    name = f"conv {kernel}×{kernel}{stepped}{padded}"
    if activation:
        name += f", {activation}"
    return Layer(part, name, _shape(shape), _shape(out), _count(layer), flops=per_output * math.prod(out)), out


def _reads(space: spaces.Space, indexed: bool) -> str:
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        if indexed:
            return "choose columns"
        return "one-hot"
    if len(space.shape or ()) > 1:
        return "flatten"
    return "read"


def _norm(part: str, norm: nn.Module, size: int) -> Layer:
    if isinstance(norm, FrozenBatchNorm):
        return Layer(part, "batch norm", str(size), str(size), _count(norm), statistics=_saved(norm), flops=4 * size)
    return Layer(part, "layer norm", str(size), str(size), _count(norm), flops=8 * size)


def _chain(part: str, chain: DenseChain, columns: int) -> Iterator[Layer]:
    activation = next((name for name, known in ACTIVATIONS.items() if known is chain._activation), "activation")
    for i, linear in enumerate(chain.layers):
        assert isinstance(linear, nn.Linear)
        n_in, n_out = linear.in_features, linear.out_features
        bias = n_out if linear.bias is not None else 0
        picks = chain.indexed and i == 0  # adds the columns that are named instead of multiplying by zeros
        kind, reads, flops = "linear", str(n_in), 2 * n_in * n_out + bias
        if picks:
            kind, reads, flops = "linear (columns by index)", "index", columns * n_out
        yield Layer(part, kind, reads, str(n_out), n_in * n_out + bias, flops=flops)
        if i < chain._n_activated:
            if chain.norms is not None:
                norm = chain.norms[i]
                yield _norm(part, norm, n_out)
            yield Layer(part, activation, str(n_out), str(n_out), flops=n_out)
            if chain.dropout:
                yield Layer(part, f"dropout {chain.dropout:g} (critic's loss only)", str(n_out), str(n_out))


def _memory(part: str, memory: RecurrentLayers, columns: int) -> Iterator[Layer]:
    """A row per recurrent layer of each memory; acting steps all of them."""
    owners = ["actor", "critic"] if memory.width == 2 else [""]
    size, gates = memory.size, memory.cell.gates
    first = memory.inputs.layers[0]
    assert isinstance(first, nn.Linear)
    for level in range(memory.depth):
        indexed = memory.inputs.indexed and level == 0
        n_in = first.in_features if level == 0 else size
        own_bias = size * bool(len(memory.biases))
        parameters = gates * size * (n_in + size + 1) + own_bias
        reading = columns * gates * size if indexed else 2 * n_in * gates * size
        # Two products, their sum with the bias, and per unit each gate's function and about six operations more.
        flops = reading + 2 * size * gates * size + 2 * gates * size + (gates + 6) * size
        for owner in owners:
            name = f"{memory.kind}, {owner}" if owner else memory.kind
            yield Layer(part, name, "index" if indexed else str(n_in), str(size), parameters, flops=flops)


def _other(part: str, module: nn.Module) -> Iterator[Layer]:
    for name, inner in module.named_modules():
        count = sum(parameter.numel() for parameter in inner.parameters(recurse=False))
        saved = sum(buffer.numel() for buffer in inner.buffers(recurse=False))
        if count or saved:
            label = f"{type(inner).__name__.lower()} {name}".rstrip()
            yield Layer(part, label, "–", "–", count, saved)


def _sum(sizes: Iterable[int]) -> str:
    return " + ".join(map(str, sizes))


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _saved(module: nn.Module) -> int:
    """Numbers of its persistent buffers."""
    return sum(tensor.numel() for tensor in module.state_dict().values() if isinstance(tensor, Tensor))


def _shape(shape: Any) -> str:
    return "×".join(str(int(side)) for side in shape) or "1"
