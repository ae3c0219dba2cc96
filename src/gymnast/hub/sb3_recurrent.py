"""The LSTMs of sb3-contrib's RecurrentPPO, as the tensors of our recurrent layers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gymnast.errors import CheckpointError
from gymnast.hub.sb3 import Sb3Model

KWARGS = {"lstm_hidden_size", "n_lstm_layers", "shared_lstm", "enable_critic_lstm"}
"""The tensors say it all."""
_WEIGHT = re.compile(r"lstm_actor\.weight_hh_l(\d{1,2})")
Columns = Callable[[Tensor], Tensor]
"""Puts the columns of a first weight into the order in which our encoder delivers observations."""


def is_recurrent(model: Sb3Model) -> bool:
    """Whether its policy remembers."""
    return any(_WEIGHT.fullmatch(name) for name in model.tensors)


def take_memory(left: dict[str, Tensor], model: Sb3Model, columns: Columns) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Keys of the policy section and our tensors; what they were made of is taken out of `left`."""
    if model.policy_kwargs.get("lstm_kwargs"):
        raise CheckpointError(f"{model.where} was made with lstm_kwargs, which is not supported.")
    if "critic.weight" in left:
        raise CheckpointError(
            f"{model.where} has a critic without LSTM next to an actor with one (enable_critic_lstm=False): not supported, "
            "expected an LSTM each, or a shared one."
        )
    depth = sum(_WEIGHT.fullmatch(name) is not None for name in left)
    memories = [_layers(left, model.where, "lstm_actor", depth)]
    if any(name.startswith("lstm_critic.") for name in left):
        memories.append(_layers(left, model.where, "lstm_critic", depth))
    size = memories[0][0][1].shape[1]
    if any(hidden.shape != (4 * size, size) for layers in memories for _, hidden, _ in layers):
        raise CheckpointError(f"{model.where} is damaged: its LSTMs do not fit one another.")
    tensors = {
        "memory.inputs.layers.0.weight": torch.cat([columns(layers[0][0]) for layers in memories]),
        "memory.inputs.layers.0.bias": torch.cat([layers[0][2] for layers in memories]),
    }
    for level in range(depth):
        tensors[f"memory.weights.{level}"] = torch.stack([layers[level][1].t() for layers in memories])
        if level:
            tensors[f"memory.between.{level - 1}"] = torch.stack([layers[level][0].t() for layers in memories])
            tensors[f"memory.between_bias.{level - 1}"] = torch.stack([layers[level][2][None] for layers in memories])
    settings = {"memory": "lstm", "memory_size": size, "memory_layers": depth, "shared_memory": len(memories) == 1}
    return settings, tensors


def _layers(left: dict[str, Tensor], where: str, name: str, depth: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Weights of inputs and of what was before, and the sum of both biases, layer by layer."""
    found = []
    for level in range(depth):
        names = [f"{name}.{what}_l{level}" for what in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        if any(one not in left for one in names):
            raise CheckpointError(f"{where} has no layer '{name}' {level}: it is not complete.")
        inputs, hidden, bias_in, bias_hidden = (left.pop(one).float() for one in names)
        rows = inputs.shape[0]
        if inputs.dim() != 2 or hidden.shape != (rows, rows // 4) or {len(bias_in), len(bias_hidden)} != {rows}:
            raise CheckpointError(f"{where} is damaged: its layer '{name}' {level} does not fit the others.")
        found.append((_reordered(inputs), _reordered(hidden), _reordered(bias_in + bias_hidden)))
    return found


def _reordered(rows: Tensor) -> Tensor:
    """Torch's gates are i, f, g, o; ours o, i, f, g."""
    i, f, g, o = rows.chunk(4)
    return torch.cat((o, i, f, g))
