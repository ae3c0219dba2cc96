"""Which layers of one network fit into another, by name and shape, and why the others do not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

NORMALISER, LOG_STD = "encoder.norm", "log_std"
_CHAIN = re.compile(r"(actor|critic)\.layers\.(\d+)")


@dataclass(frozen=True)
class Part:
    """A layer, or another thing that is taken over whole or not at all."""

    name: str
    why: str = ""
    """Why it is not loaded; empty when it is."""
    new: bool = True
    """Whether the new run has it."""

    @property
    def loaded(self) -> bool:
        """Whether it was taken over."""
        return not self.why

    @property
    def outcome(self) -> str:
        """`loaded`; `new`: as initialised; `left`: of no use here."""
        if self.loaded:
            return "loaded"
        if self.new:
            return "new"
        return "left"


def layers_of(tensors: Iterable[str]) -> dict[str, list[str]]:
    """Names of tensors by the layer they belong to: a weight is of no use without its bias, nor a mean without its count."""
    layers: dict[str, list[str]] = {}
    for name in tensors:
        layers.setdefault(name.rpartition(".")[0] or name, []).append(name)
    return layers


def fit(own: Mapping[str, Tensor], source: Mapping[str, Tensor]) -> list[Part]:
    """Every layer of the new network, then those that only the source has."""
    layers, theirs = layers_of(own), layers_of(source)
    ends, their_ends = _output_layers(layers), _output_layers(theirs)
    parts: list[Part] = []
    for layer, names in layers.items():
        why = _misfit(names, own, source)
        if not why and (layer in ends) != (layer in their_ends):
            why = "an output layer in one network, a hidden one in the other"
        parts.append(Part(layer, why))
    actor_loaded = any(part.loaded and part.name in ends and part.name.startswith("actor.") for part in parts)
    if not actor_loaded:
        # The spread of actions that were never chosen would end exploration before it began.
        parts = [Part(LOG_STD, "without the actor's output layer") if _is_spread(part) else part for part in parts]
    return parts + [Part(layer, "not in the new network", new=False) for layer in theirs if layer not in layers]


def nothing_learnt(parts: Iterable[Part]) -> bool:
    """Whether no layer of the network itself is loaded."""
    return not any(part.loaded and part.name not in (NORMALISER, LOG_STD) for part in parts)


def _misfit(names: list[str], own: Mapping[str, Tensor], source: Mapping[str, Tensor]) -> str:
    missing = [name for name in names if name not in source]
    if missing:
        if len(missing) == len(names):
            return "missing in the source"
        return f"{missing[0]} is missing in the source"
    for name in names:
        if own[name].shape != source[name].shape:
            return f"{_shape(source[name])} in the source, {_shape(own[name])} here"
    return ""


def _output_layers(layers: Iterable[str]) -> set[str]:
    """The last layer of actor and critic."""
    last: dict[str, int] = {}
    for layer in layers:
        if match := _CHAIN.fullmatch(layer):
            last[match[1]] = max(last.get(match[1], 0), int(match[2]))
    return {f"{chain}.layers.{number}" for chain, number in last.items()}


def _is_spread(part: Part) -> bool:
    return part.name == LOG_STD and part.loaded


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "1"
