"""An agent as one file: its tensors as safetensors, its config in the header. Nothing in it is code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gymnast.errors import GymnastError, UsageError
from gymnast.own_code import missing, objects_in
from gymnast.runs.files import write_atomic
from gymnast.training.trainer import policy_tensors

if TYPE_CHECKING:
    from gymnast.api.agent import Agent

SUFFIX = ".safetensors"
KEY = "gymnast"


def is_agent_file(reference: str) -> bool:
    """Whether a reference names a file that `Agent.save` has written."""
    return reference.lower().endswith(SUFFIX)


def save_agent(agent: Agent, path: Path) -> Path:
    """Write the agent; the suffix is added where it is missing."""
    config = agent.config.model_dump(mode="json")
    for key, reference in objects_in(config):
        if not key.startswith("env."):
            raise UsageError(f"The agent cannot be saved: {missing(reference.partition(':')[2], key)}")
    if path.suffix != SUFFIX:
        path = path.with_name(path.name + SUFFIX)
    about = {"config": config, "source": agent.source, "checkpoint": agent.checkpoint}
    tensors = {name: tensor.contiguous() for name, tensor in policy_tensors(agent.policy).items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, save(tensors, {KEY: json.dumps(about)}))
    except OSError as error:
        raise GymnastError(f"Cannot write the agent to '{path}': {error.strerror or error}.") from None
    return path


def read_agent(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What is said about an agent, and its tensors."""
    if not path.is_file():
        raise UsageError(f"There is no file '{path}'.")
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        if not isinstance(about["config"], dict):
            raise ValueError("no config")
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise UsageError(f"'{path}' is not an agent saved by gymnast ({type(error).__name__}: {error}).") from None
    return about, tensors
