"""Which ReLUs are dead: zero whatever the network is shown."""

from __future__ import annotations

import torch
from torch import Tensor

from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.base import Policy
from gymnast.policies.dense import DenseChain
from gymnast.policies.encoders import Observation


def rectified(policy: Policy, obs: Observation) -> dict[str, Tensor]:
    """What each layer with ReLUs gives of observations [B, …], by `part.layer`: [B, units] or [B, channels, …].

    Nothing for policies of plug-ins, whose layers are not known.
    """
    if not isinstance(policy, ActorCritic):
        return {}
    found: dict[str, Tensor] = {}
    with torch.no_grad():
        for number, net in enumerate(policy.encoder.nets):
            name = "encoder" if number == 0 else f"encoder{number}"
            found |= {f"{name}.{i}": y for i, y in enumerate(net.rectified(policy.encoder.pictures(obs)[number]))}
        if policy.state_shape is not None:
            return found  # what the other layers read hangs on all that was seen before
        x = policy.encoder(obs)
        if policy.trunk is not None:
            found |= _of_chain("trunk", policy.trunk, x)
            x = policy.trunk.infer(x)
        found |= _of_chain("policy", policy.actor, x)
        for name, chain in policy.predictors():
            found |= _of_chain(name, chain, x)
    return found


def _of_chain(name: str, chain: DenseChain, x: Tensor) -> dict[str, Tensor]:
    if not chain.rectifies:
        return {}
    return {f"{name}.{i}": y for i, y in enumerate(chain.activated(x))}


def dead(layer: Tensor) -> Tensor:
    """Whether each unit (of a convolution: each channel) is zero for every sample and everywhere."""
    others = [axis for axis in range(layer.dim()) if axis != 1]
    return layer.amax(others) <= 0.0
