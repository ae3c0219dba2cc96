"""Models that Stable-Baselines3 saved, without unpickling: `model.zip` → what is in it, checked and named.

The zip holds `data` (JSON, with base64 pickles where JSON does not do) and `policy.pth` (the tensors). Pickled fields
are read symbolically, and only those that are needed: nothing in the file is imported or called.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pydantic import ValidationError
from torch import Tensor

from gymnast.config.algorithms import CONFIGS, OnPolicyConfig
from gymnast.config.load import Resolved, resolve
from gymnast.config.names import RENAMED_ENVS, preset_of
from gymnast.config.schema import PolicyConfig, RunConfig
from gymnast.config.variants import split_reference
from gymnast.envs.defaults import generic_defaults
from gymnast.errors import CheckpointError
from gymnast.hub import pickles
from gymnast.hub.archives import Archive
from gymnast.hub.nodes import Node, describe, mapping
from gymnast.hub.saved_spaces import counts_from_zero, same_actions, same_observations
from gymnast.hub.saved_spaces import space as read_space
from gymnast.hub.torch_files import read_tensors

# A field that only one algorithm saves. sb3-contrib's recurrent and maskable PPO are told apart by their policies.
SIGNATURES = {
    "cg_max_steps": "TRPO",
    "exploration_fraction": "DQN",
    "target_policy_noise": "TD3 or DDPG",
    "target_entropy": "SAC",
    "clip_range": "PPO",
    "gae_lambda": "A2C",
}
HYPERPARAMETERS = ("n_steps", "gamma", "gae_lambda", "ent_coef", "vf_coef", "learning_rate", "batch_size", "n_epochs")
EXTRACTOR = "features_extractor."
_CNN = re.compile(re.escape(EXTRACTOR) + r"(?:extractors\.([^.]+)\.)?cnn\.0\.weight")


@dataclass(frozen=True)
class Sb3Model:
    """The contents of a model file."""

    where: str
    algorithm: str
    """`ppo` or `a2c`."""
    policy_class: str
    policy_kwargs: dict[str, Any]
    use_sde: bool
    observation_space: spaces.Space
    action_space: spaces.Space
    hyperparameters: dict[str, int | float]
    tensors: dict[str, Tensor]

    @property
    def title(self) -> str:
        """File and algorithm, as messages name the model."""
        return f"{self.where} (Stable-Baselines3 {self.algorithm.upper()})"

    @property
    def images(self) -> frozenset[str | None]:
        """The parts of the observation that a CNN reads; None is an observation without parts."""
        return frozenset(match[1] for name in self.tensors if (match := _CNN.fullmatch(name)))

    def pixel_scale(self, part: spaces.Space) -> float:
        """What a first weight for this part is multiplied with: ours reads all uint8 divided by 255, theirs only images."""
        if not isinstance(part, spaces.Box) or part.dtype != np.uint8:
            return 1.0
        image = len(part.shape) == 3 and bool((part.low == 0).all() and (part.high == 255).all())
        if image and self.policy_kwargs.get("normalize_images", True) is True:
            return 1.0
        return 255.0

    def check_spaces(self, observation: spaces.Space, action: spaces.Space, env_id: str) -> None:
        """Refuse an env that the model was not made for."""
        pairs = (
            ("observations", self.observation_space, observation),
            ("actions", self.action_space, action),
        )
        for what, own, real in pairs:
            if what == "actions":
                same = same_actions(own, real)
            else:
                same = same_observations(own, real, self.images)
            if not same:
                raise CheckpointError(f"{self.where} was made for {what} {own}, but {env_id} has {real}.")
            if not counts_from_zero(own):
                raise CheckpointError(
                    f"{self.where} has {what} {own} that do not count from 0: Stable-Baselines3 ignores the start, "
                    "so what the numbers mean is not certain."
                )

    def run_config(self, config: RunConfig, policy: dict[str, Any], scales_reward: bool) -> RunConfig:
        """The config of the env (`env_settings`) with this model's policy and algorithm sections."""
        try:
            sections = {"policy": PolicyConfig.model_validate(policy), "algo": self._algorithm_config(scales_reward)}
        except ValidationError:
            raise CheckpointError(f"{self.where} makes no sense: its layers or statistics are not possible.") from None
        return config.model_copy(update={"name": f"{config.env.id}:{self.algorithm}", **sections})

    def _algorithm_config(self, scales_reward: bool) -> OnPolicyConfig:
        """Values that our schema does not allow stay at its defaults: nothing is trained with them."""
        kind, known = CONFIGS[self.algorithm], dict[str, Any](normalize_reward=scales_reward)
        for key, value in self.hyperparameters.items():
            try:
                kind.model_validate({"id": self.algorithm, key: value})
            except ValidationError:
                continue
            known[key] = value
        return kind.model_validate({"id": self.algorithm, **known})


def read_model(path: Path) -> Sb3Model:
    """Open a PPO or A2C model; a sentence for anything else."""
    where = str(path)
    with Archive(path, where) as archive:
        missing = sorted({"data", "policy.pth"} - archive.names)
        if missing:
            raise CheckpointError(f"{where} is not a Stable-Baselines3 model: it has no '{missing[0]}' inside.")
        data = _json(archive.read("data"), where)
        algorithm = _algorithm(data, where)
        policy_class = _unpacked(data, "policy_class", where)
        if not isinstance(policy_class, Node):
            raise CheckpointError(f"{where} is damaged: its policy_class is {describe(policy_class)}.")
        kwargs = mapping(_unpacked(data, "policy_kwargs", where, default={}), where)
        return Sb3Model(
            where=where,
            algorithm=algorithm,
            policy_class=policy_class.path,
            policy_kwargs={str(key): value for key, value in kwargs.items()},
            use_sde=data.get("use_sde") is True,
            observation_space=read_space(_unpacked(data, "observation_space", where), where),
            action_space=read_space(_unpacked(data, "action_space", where), where),
            hyperparameters={key: data[key] for key in HYPERPARAMETERS if _is_number(data.get(key))},
            tensors=read_tensors(archive.read("policy.pth", weights=True), f"{where}/policy.pth"),
        )


def env_settings(reference: str) -> Resolved:
    """The config of the env as Stable-Baselines3 saw it: the bare env, unless a variant of ours is named.

    Action masks are off in any case: its PPO and A2C know none.
    """
    resolved = resolve(reference, generic=generic_defaults)
    config = resolved.config
    env_id, variant = split_reference(reference)
    bare: dict[str, Any] = {} if variant else {"wrappers": []}
    if variant is None and preset_of(RENAMED_ENVS.get(env_id, env_id)) is None:
        bare["kwargs"] = {}
    env = config.env.model_copy(update={"action_mask": "off", **bare})
    evaluation = config.eval.model_copy(update={"env": {}})
    resolved.config = config.model_copy(update={"env": env, "eval": evaluation})
    return resolved


def _json(raw: bytes, where: str) -> dict[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        raise CheckpointError(f"{where} is damaged: its 'data' is not JSON.") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{where} is damaged: its 'data' is not a JSON object.")
    return data


def _algorithm(data: dict[str, Any], where: str) -> str:
    name = next((name for key, name in SIGNATURES.items() if key in data), "unknown")
    if name.lower() not in CONFIGS:
        kind = f"a {name} model" if name != "unknown" else "a model of an unknown algorithm"
        raise CheckpointError(f"{where} is {kind}: only PPO and A2C models of Stable-Baselines3 can be read.")
    return name.lower()


def _unpacked(data: dict[str, Any], key: str, where: str, default: Any = ...) -> Any:
    """A field of `data`: plain JSON, or the symbolic reading of its pickle."""
    value = data.get(key, default)
    if value is ...:
        raise CheckpointError(f"{where} is not a Stable-Baselines3 model: its 'data' has no '{key}'.")
    if not isinstance(value, dict) or ":serialized:" not in value:
        return value
    try:
        raw = base64.b64decode(value[":serialized:"])
    except (binascii.Error, ValueError, TypeError):
        raise CheckpointError(f"{where} is damaged: '{key}' in its 'data' is not base64.") from None
    return pickles.read(raw, f"{where} ({key})")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
