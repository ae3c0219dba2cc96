"""From the tensors of a Stable-Baselines3 policy to those of our `ActorCritic`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.errors import CheckpointError
from gymnast.hub.nodes import Node, describe
from gymnast.hub.saved_spaces import parts_of
from gymnast.hub.sb3 import Sb3Model
from gymnast.hub.sb3_images import cnn_setting, drop_copies, take_cnns
from gymnast.hub.sb3_recurrent import KWARGS, is_recurrent, take_memory
from gymnast.policies.distributions import distribution_for
from gymnast.policies.encoders import flat_size

ACTIVATIONS = {
    "Tanh": "tanh",
    "ReLU": "relu",
    "ELU": "elu",
    "LeakyReLU": "leaky_relu",
    "SiLU": "silu",
    "GELU": "gelu",
}
IRRELEVANT = {
    *("net_arch", "ortho_init", "log_std_init", "optimizer_class", "optimizer_kwargs"),  # the tensors say it all
    *("use_sde", "full_std", "use_expln", "sde_net_arch"),  # noise only
    *("share_features_extractor", "features_extractor_kwargs", "normalize_images"),
}
NO_NOISE = -20.0
"""log std in place of a state-dependent one."""
Chain = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Network:
    """Keys of the policy section, and a state dict that fits the policy built from them."""

    settings: dict[str, Any]
    tensors: dict[str, Tensor]
    images: frozenset[str | None] = frozenset()
    """The parts of the observation that a CNN reads, which are not normalised."""
    only_deterministic: str | None = None
    """Why actions cannot be sampled, if they cannot."""


Converter = Callable[[Sb3Model, spaces.Space], Network]


def converter(model: Sb3Model) -> Converter:
    """The function that turns this model's policy into ours, given the env's canonical observation space."""
    module, _, name = model.policy_class.rpartition(".")
    package = module.split(".")[0]
    if name not in POLICIES or package != ("sb3_contrib" if name.startswith(RECURRENT) else "stable_baselines3"):
        raise CheckpointError(
            f"{model.where} has a policy of class {model.policy_class}, which is not supported: expected MlpPolicy, "
            "CnnPolicy or MultiInputPolicy of Stable-Baselines3, or the recurrent ones of sb3-contrib's RecurrentPPO."
        )
    if name.startswith(RECURRENT) != is_recurrent(model):
        raise CheckpointError(f"{model.where} is damaged: its policy is {name}, and its tensors are of another one.")
    for tensor_name, tensor in model.tensors.items():
        if not tensor.isfinite().all():
            raise CheckpointError(f"{model.where} has NaN or infinity in '{tensor_name}': its training had failed.")
    return POLICIES[name]


def _dense(model: Sb3Model, space: spaces.Space) -> Network:
    """Two chains of linear layers over the flattened observation, or over the features of one CNN per image."""
    activation = _check_kwargs(model)
    left = dict(model.tensors)
    drop_copies(left, model.where)
    settings: dict[str, Any] = {"cnn": "none"}
    tensors: dict[str, Tensor] = {}
    features = 0
    if model.images:
        tensors, features = take_cnns(left, model, space)
        settings = {
            "cnn": cnn_setting(model, space),
            "cnn_features": features,
            "background": 0.0,
            "precision": "float32",
        }
    if is_recurrent(model):
        memory, taken = take_memory(left, model, lambda weight: _first_weight(weight, model, space, features))
        settings |= memory
        tensors |= taken
    shared = "mlp_extractor.shared_net"  # before 1.8; a copy in each chain computes the same
    chains = {
        "actor": _chain(left, model.where, shared, "mlp_extractor.policy_net", "action_net"),
        "critic": _chain(left, model.where, shared, "mlp_extractor.value_net", "value_net"),
    }
    log_std = left.pop("log_std", None)
    left = {name: tensor for name, tensor in left.items() if not name.startswith(shared)}
    if left:
        raise CheckpointError(f"{model.where} has a tensor '{next(iter(left))}' that its policy should not have.")
    outputs = distribution_for(model.action_space).n_outputs
    if chains["actor"][-1][0].shape[0] != outputs or chains["critic"][-1][0].shape[0] != 1:
        raise CheckpointError(f"{model.where} does not fit its own action space {model.action_space}.")
    for chain in chains.values():
        if not is_recurrent(model):
            chain[0] = (_first_weight(chain[0][0], model, space, features), chain[0][1])
    hidden = {name: [len(bias) for _, bias in chain[:-1]] for name, chain in chains.items()}
    settings |= {"hidden": hidden["actor"], "critic_hidden": hidden["critic"], "activation": activation}
    tensors |= {
        f"{name}.layers.{i}.{what}": tensor
        for name, chain in chains.items()
        for i, pair in enumerate(chain)
        for what, tensor in zip(("weight", "bias"), pair)
    }
    return _with_noise(model, settings, tensors, log_std)


def _with_noise(model: Sb3Model, settings: dict[str, Any], tensors: dict[str, Tensor], log_std: Any) -> Network:
    """Add the standard deviation of Box actions."""
    if not isinstance(model.action_space, spaces.Box):
        return Network(settings, tensors, model.images)
    size = int(np.prod(model.action_space.shape))
    if model.use_sde:
        # Its noise is a function of the last hidden layer; its mean, the deterministic action, is an ordinary output.
        why = "it explores by state-dependent noise (gSDE), which gymnast does not have"
        return Network(settings, {**tensors, "log_std": torch.full((size,), NO_NOISE)}, model.images, why)
    if log_std is None or log_std.shape != (size,):
        raise CheckpointError(f"{model.where} has no 'log_std' that fits its action space {model.action_space}.")
    return Network(settings, {**tensors, "log_std": log_std.float()}, model.images)


RECURRENT = "Recurrent"
_KINDS = ("ActorCriticPolicy", "ActorCriticCnnPolicy", "MultiInputActorCriticPolicy")
POLICIES: dict[str, Converter] = dict.fromkeys((*_KINDS, *(f"{RECURRENT}{kind}" for kind in _KINDS)), _dense)
"""By class name; a further kind of policy is one more function here."""


def _check_kwargs(model: Sb3Model) -> str:
    """The activation's name; refuse settings that change what the network computes."""
    activation = "tanh"
    for key, value in model.policy_kwargs.items():
        if key == "activation_fn":
            name = value.name if _is_class(value, "torch") else None
            if name not in ACTIVATIONS:
                raise CheckpointError(
                    f"{model.where} uses the activation {describe(value)}, which is not supported: expected one of "
                    f"{', '.join(ACTIVATIONS)}."
                )
            activation = ACTIVATIONS[name]
        elif key == "features_extractor_class":
            if not _is_class(value, "stable_baselines3"):
                raise CheckpointError(
                    f"{model.where} has its own features extractor ({describe(value)}): not supported."
                )
        elif key == "squash_output":
            if value is not False:
                raise CheckpointError(f"{model.where} squashes its actions (squash_output): not supported.")
        elif key not in IRRELEVANT | KWARGS | {"lstm_kwargs"}:
            raise CheckpointError(f"{model.where} was made with policy_kwargs '{key}', which is not supported.")
    return activation


def _is_class(value: Any, package: str) -> bool:
    return isinstance(value, Node) and value.args is None and value.module.split(".")[0] == package


def _chain(left: dict[str, Tensor], where: str, *parts: str) -> Chain:
    """Layers of the parts one after the other, taken out of `left` (shared ones stay for the other chain).

    The last part is the output layer and must be there.
    """
    layers: Chain = []
    found: list[tuple[int, str]] = []
    for part in parts:
        pattern = re.compile(re.escape(part) + r"\.(?:(\d{1,4})\.)?weight")
        found = sorted((int(match[1] or 0), name) for name in left if (match := pattern.fullmatch(name)))
        for i, (index, name) in enumerate(found):
            bias = name.removesuffix("weight") + "bias"
            # Every second place is an activation.
            if index != 2 * i or bias not in left or not _fits(left[name], left[bias], layers):
                raise CheckpointError(f"{where} is damaged: its layer '{name}' does not fit the others.")
            layers.append((left[name].float(), left[bias].float()))
            if "shared_net" not in part:
                del left[name], left[bias]
    if not found:
        raise CheckpointError(f"{where} has no layer '{parts[-1]}': it is not complete.")
    return layers


def _fits(weight: Tensor, bias: Tensor, before: Chain) -> bool:
    if weight.dim() != 2 or bias.shape != weight.shape[:1]:
        return False
    return not before or weight.shape[1] == len(before[-1][1])


# ---- the first layer -----------------------------------------------------------------------------------------------


def _first_weight(weight: Tensor, model: Sb3Model, space: spaces.Space, features: int) -> Tensor:
    """Columns of the first layer in the order, and for the scale, in which our encoder delivers observations.

    Features of images come first in ours. Discrete parts are one-hot in both; ours just indexes the columns.
    """
    own = parts_of(model.observation_space)
    sizes = [features if key in model.images else flat_size(part) for key, part in own.items()]
    if weight.shape[1] != sum(sizes):
        raise CheckpointError(f"{model.where} does not fit its own observation space {model.observation_space}.")
    blocks = dict(zip(own, weight.split(sizes, 1)))
    for key, part in own.items():
        if key not in model.images:
            blocks[key] = blocks[key] * model.pixel_scale(part)
    order = sorted(parts_of(space), key=lambda key: key not in model.images)  # stable
    return torch.cat([blocks[key] for key in order], 1)
