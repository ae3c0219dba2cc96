"""VecNormalize statistics of Stable-Baselines3 as buffers of our policy."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.errors import CheckpointError
from gymnast.hub.arrays import array, number
from gymnast.hub.nodes import Node, attributes, describe, mapping
from gymnast.hub.pickles import read
from gymnast.hub.saved_spaces import parts_of
from gymnast.policies.encoders import flat_size

CLASS = "stable_baselines3.common.vec_env.vec_normalize.VecNormalize"
NAMES = ("vecnormalize.pkl", "vec_normalize.pkl")
"""What rl-zoo calls the file, and what models on the Hugging Face Hub have."""
OUR_EPSILON = 1e-8
MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Moments:
    """Mean and variance, as Stable-Baselines3's RunningMeanStd keeps them."""

    mean: np.ndarray
    variance: np.ndarray
    count: float


@dataclass(frozen=True)
class Statistics:
    """What a VecNormalize file says about observations, and whether rewards were scaled in training."""

    where: str
    moments: dict[str | None, Moments]
    """By key of a Dict observation; under None for a single array. Empty when observations were left alone."""
    clip: float
    epsilon: float
    scales_reward: bool

    def policy_settings(self) -> dict[str, Any]:
        """Keys of the policy section."""
        clip = min(self.clip, float(np.finfo(np.float32).max))  # infinity means no clipping
        if self.moments:
            return {"normalize_obs": True, "obs_clip": clip}
        return {"normalize_obs": False}

    def tensors(self, space: spaces.Space, images: Collection[str | None] = ()) -> dict[str, Tensor]:
        """Buffers of `RunningNorm` for the canonical observation space, without the parts that a CNN reads."""
        if not self.moments:
            return {}
        parts = parts_of(space)
        if not self.moments.keys() <= parts.keys():
            raise self._misfit(space)
        if not self.moments.keys().isdisjoint(images):
            raise CheckpointError(f"{self.where} normalises images, which is not supported.")
        rows = [self._part(part, self.moments.get(key), space) for key, part in parts.items() if key not in images]
        count = max(moments.count for moments in self.moments.values())
        return {
            "encoder.norm.mean": torch.from_numpy(np.concatenate([mean for mean, _ in rows])),
            "encoder.norm.variance": torch.from_numpy(np.concatenate([variance for _, variance in rows])),
            "encoder.norm.count": torch.tensor(count, dtype=torch.float64),
        }

    def _part(self, part: spaces.Space, moments: Moments | None, whole: spaces.Space) -> tuple[np.ndarray, np.ndarray]:
        if moments is None:
            if _largest(part) > self.clip:
                raise CheckpointError(
                    f"{self.where} leaves a part of the observation alone that may exceed its clip_obs of {self.clip:g}: "
                    "that is not supported."
                )
            return np.zeros(flat_size(part)), np.full(flat_size(part), 1.0 - OUR_EPSILON)
        if not isinstance(part, spaces.Box) or moments.mean.shape != part.shape:
            raise self._misfit(whole)
        if part.dtype == np.uint8:
            raise CheckpointError(f"{self.where} normalises uint8 observations, which is not supported.")
        # Ours adds 1e-8 before the root; the rest of another epsilon goes into the variance.
        return moments.mean.ravel(), moments.variance.ravel() + (self.epsilon - OUR_EPSILON)

    def _misfit(self, space: spaces.Space) -> CheckpointError:
        shapes = {key: moments.mean.shape for key, moments in self.moments.items()}
        found = shapes.get(None, shapes)
        return CheckpointError(
            f"{self.where} is for observations of shape {found}, but the env has {space}. "
            "Name another file with --vecnormalize, or use none with --no-vecnormalize."
        )


def _largest(space: spaces.Space) -> float:
    """Largest magnitude of what the first layer gets of an unnormalised part."""
    if not isinstance(space, spaces.Box) or space.dtype == np.uint8:
        return 1.0
    return float(max(np.abs(space.low).max(), np.abs(space.high).max()))


NONE = Statistics("", {}, 1.0, OUR_EPSILON, False)


def statistics_for(
    model: Path, env_id: str, choice: str | Path | Literal[False] | None
) -> tuple[Statistics, list[str]]:
    """The statistics a model is used with, and what the user should be told: named, found next to it, or none."""
    if choice is False:
        return NONE, []
    if choice is None:
        path = find(model, env_id)
    else:
        path = Path(choice)
    if path is None:
        return NONE, []
    statistics = load(path)
    how = "" if choice is not None else ", found next to the model; --no-vecnormalize ignores it"
    used = "normalised" if statistics.moments else "left as they are"
    return statistics, [f"Observations are {used} as {path} says (VecNormalize{how})."]


def find(model: Path, env_id: str) -> Path | None:
    """The statistics next to a model, where rl-zoo and the Hub put them."""
    folders = (model.parent / model.stem, model.parent / env_id, model.parent)
    return next((folder / name for folder in folders for name in NAMES if (folder / name).is_file()), None)


def load(path: Path) -> Statistics:
    """Read a VecNormalize pickle symbolically: nothing in it is imported or called."""
    where = str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CheckpointError(f"{where} is larger than any VecNormalize file.")
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{where} cannot be read: {error.strerror or error}.") from None
    tree = read(data, where)
    if not isinstance(tree, Node) or tree.path != CLASS:
        raise CheckpointError(f"{where} is not a VecNormalize file of Stable-Baselines3: it holds {describe(tree)}.")
    saved = attributes(tree, where, "VecNormalize")
    clip, epsilon = (float(number(saved.get(key), where)) for key in ("clip_obs", "epsilon"))
    if not clip > 0 or not 0 <= epsilon < math.inf:
        raise CheckpointError(f"{where} makes no sense: clip_obs is {clip:g} and epsilon is {epsilon:g}.")
    moments = {}
    if saved.get("norm_obs") is True:
        moments = _moments(saved, epsilon, where)
    return Statistics(where, moments, clip, epsilon, saved.get("norm_reward") is True)


def _moments(saved: dict[str, Any], epsilon: float, where: str) -> dict[str | None, Moments]:
    running = saved.get("obs_rms")
    if isinstance(running, Node) and running.name == "RunningMeanStd":
        return {None: _one(running, epsilon, where)}
    parts = mapping(running, where)
    keys = saved.get("norm_obs_keys")
    wanted = list(parts) if keys is None else keys
    if not isinstance(wanted, list) or not all(isinstance(key, str) and key in parts for key in wanted):
        raise CheckpointError(f"{where} is damaged: norm_obs_keys and obs_rms do not agree.")
    return {key: _one(parts[key], epsilon, where) for key in wanted}


def _one(node: Any, epsilon: float, where: str) -> Moments:
    saved = attributes(node, where, "RunningMeanStd")
    mean, variance = (array(saved.get(key), where).astype(np.float64) for key in ("mean", "var"))
    count = float(number(saved.get("count"), where))
    sound = mean.shape == variance.shape and np.isfinite(mean).all() and np.isfinite(variance).all()
    if not sound or not (variance + epsilon > 0).all() or not 0 <= count < math.inf:
        raise CheckpointError(f"{where} is damaged: its means and variances make no sense.")
    return Moments(mean, variance, count)
