"""A Stable-Baselines3 model as the beginning of a run (`train.init_from: model.zip`)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gymnast.config.schema import PolicyConfig, RunConfig
from gymnast.envs.spaces import canonical
from gymnast.runs.origin import is_model_file, pinned
from gymnast.training.transfer.begin import Source


def model_source(config: RunConfig) -> Source | None:
    """The model file that `train.init_from` names, nothing in it unpickled; None when it names no file."""
    reference = config.train.init_from
    if reference is None or not is_model_file(reference):
        return None
    from gymnast.hub import vecnormalize
    from gymnast.hub.sb3 import read_model
    from gymnast.hub.sb3_policies import converter

    path = Path(pinned(Path(), reference))
    model = read_model(path)
    space = canonical(model.observation_space)
    net = converter(model)(model, space)
    statistics_at = vecnormalize.find(path, config.env.id)
    if statistics_at is None:
        statistics = vecnormalize.NONE
    else:
        statistics = vecnormalize.load(statistics_at)
    tensors = net.tensors | statistics.tensors(space, net.images)
    if net.only_deterministic:
        del tensors["log_std"]  # a stand-in without any noise: training would not explore
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Source(
        reference=str(path),
        title=f"{path.name} (Stable-Baselines3 {model.algorithm.upper()})",
        tensors=tensors,
        policy=PolicyConfig.model_validate(net.settings | statistics.policy_settings()),
        about={
            "file": str(path),
            "sha256": digest,
            "vecnormalize": None if statistics_at is None else str(statistics_at),
        },
        notices=() if statistics_at is None else (f"Observation statistics were read from {statistics_at}.",),
    )
