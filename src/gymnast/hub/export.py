"""Export of a trained policy (POL-4): ONNX or a `torch.export` program that runs without gymnast.

Inside are the observation normaliser, the networks and the most likely action, clipped as `predict` clips it. The
program is traced from `Policy.forward`; the hand-written fast path works in place and is not meant for tracing.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
import io
import json
import logging
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.config.schema import RunConfig
from gymnast.envs.actions import is_composite, parts
from gymnast.envs.make import make_envs
from gymnast.envs.spaces import allocate, n_masked_actions, starts
from gymnast.errors import MissingPackageError, UsageError
from gymnast.evaluation.evaluate import tensors
from gymnast.hub.export_check import Check, action_names, as_given, check_export
from gymnast.hub.export_errors import cannot_export
from gymnast.policies.base import Memory, Policy
from gymnast.policies.distributions import Distribution
from gymnast.runs.files import write_atomic
from gymnast.runs.store import Run

Format = Literal["onnx", "torch"]
SUFFIXES: dict[str, str] = {"onnx": ".onnx", "torch": ".pt2"}
METADATA = "gymnast.json"
"""The member of a .pt2 archive that says where the policy came from."""
RESERVED = ("obs", "mask", "state", "next_state", "action", "logits", "mean", "log_std", "params", "value")


class Trained(Protocol):
    """What is exported: the part of `gymnast.api.Agent` that is needed here."""

    config: RunConfig
    policy: Policy
    observation_space: spaces.Space
    action_space: spaces.Space
    run: Run | None
    checkpoint: str


@dataclass(frozen=True)
class Exported:
    """What an export wrote, and what goes in and out of it."""

    path: Path
    format: Format
    size: int
    inputs: list[str]
    outputs: list[str]
    metadata: dict[str, str]
    check: Check | None
    """None when it was switched off."""
    notes: tuple[str, ...] = ()
    """What the user should know of it."""


class PolicyProgram(nn.Module):
    """What the file computes: `forward(obs, mask)` → action, distribution parameters and value by name."""

    def __init__(self, policy: Policy, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        super().__init__()
        self.policy = policy
        self.starts = starts(observation_space)
        for number, start in enumerate(self.starts.values()):
            self.register_buffer(f"start{number}", torch.from_numpy(start))
        self.names = action_names(action_space)
        self.whole = not is_composite(action_space)
        self.leaves = nn.ModuleList(_Executed(leaf) for leaf in parts(action_space))

    def forward(self, obs: Any, mask: Tensor | None = None) -> dict[str, Tensor]:
        """Outputs by name, in the order of the file."""
        params, heads, _ = self.policy(self._from_zero(obs), mask)
        return self._named(params, heads)

    def _named(self, params: Tensor, heads: dict[str, Tensor]) -> dict[str, Tensor]:
        action = self.policy.distribution.sample(params, None)
        if self.whole:
            pieces = [action]
        else:
            pieces = action.split([leaf.size for leaf in self.leaves], -1)
        outputs = {name: leaf(piece) for name, leaf, piece in zip(self.names, self.leaves, pieces)}
        if self.whole:
            outputs |= split_params(self.policy.distribution, params)
        else:
            outputs["params"] = params
        if self.policy.has_critic:
            outputs["value"] = heads["value"]
        return outputs

    def _from_zero(self, obs: Any) -> Any:
        """Choices as the networks count them; the file takes what the env gives."""
        for number, part in enumerate(self.starts):
            start = getattr(self, f"start{number}")
            if part:
                obs = {**obs, part: obs[part] - start}
            else:
                obs = obs - start
        return obs


class RememberingProgram(PolicyProgram):
    """The same for a policy with a memory: `forward(obs, state, mask)` also gives `next_state`. Episodes begin with zeros."""

    def forward(self, obs: Any, state: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:  # type: ignore[override]
        """Outputs by name, in the order of the file."""
        starts = torch.zeros((1, state.shape[0]), dtype=torch.bool)
        params, heads, after = self.policy(self._from_zero(obs), mask, Memory(state, starts))
        return {**self._named(params, heads), "next_state": after}


class _Executed(nn.Module):
    """`envs.actions.executed` for one simple action space, on tensors."""

    low: Tensor
    high: Tensor
    start: Tensor

    def __init__(self, space: spaces.Space) -> None:
        super().__init__()
        self.shape = tuple(space.shape or ())
        self.size = math.prod(self.shape)
        self.clips = isinstance(space, spaces.Box)
        if isinstance(space, spaces.Box):
            self.register_buffer("low", torch.tensor(space.low, dtype=torch.float32))
            self.register_buffer("high", torch.tensor(space.high, dtype=torch.float32))
        else:
            self.register_buffer("start", torch.tensor(np.asarray(getattr(space, "start", 0))))

    def forward(self, action: Tensor) -> Tensor:
        action = action.reshape(action.shape[0], *self.shape)
        if self.clips:
            return torch.minimum(torch.maximum(action, self.low), self.high)
        whole = action.round() if action.is_floating_point() else action
        return whole.to(torch.int64) + self.start


def split_params(distribution: Distribution, params: Tensor) -> dict[str, Tensor]:
    """Distribution parameters under the names people know."""
    size = int(np.prod(distribution.action_shape))
    if not distribution.action_dtype.is_floating_point:
        return {"logits": params}
    if distribution.n_params == 2 * size:
        mean, log_std = params.split(size, -1)
        return {"mean": mean, "log_std": log_std}
    return {"params": params}


def export(agent: Trained, path: Path, format: Format = "onnx", *, check: bool = True) -> Exported:
    """Write the policy of `agent`; nothing is written when it cannot be exported or does not compute the same."""
    if format == "onnx":
        _need_onnx()
    agent, notes = in_float32(agent)
    kind = PolicyProgram if agent.policy.state_shape is None else RememberingProgram
    program = kind(agent.policy, agent.observation_space, agent.action_space).eval()
    masked = _has_masks(agent.config)
    example = example_inputs(agent, masked=masked)
    metadata = _metadata(agent)
    names = input_names(agent.policy, masked=masked)
    with torch.no_grad():
        outputs = list(program(*example))
    with _quiet():
        traced = _trace(program, example)
        if format == "onnx":
            raw = _onnx(traced, names, outputs, metadata)
        else:
            raw = _torch(traced, metadata)
        result = None
        if check:
            result = check_export(raw, format, agent, names, outputs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, raw)
    except OSError as error:
        raise UsageError(
            f"Cannot write '{path}': {error.strerror or error}. Choose another file with --output."
        ) from error
    return Exported(path, format, len(raw), names, outputs, metadata, result, notes)


def in_float32(agent: Trained) -> tuple[Trained, tuple[str, ...]]:
    """The agent with a CNN in float32, which every runtime computes with, and what to say about that."""
    if all(net.dtype == torch.float32 for net in agent.policy.encoder.nets):
        return agent, ()
    plain = copy.copy(agent)
    plain.policy = copy.deepcopy(agent.policy)
    for net in plain.policy.encoder.nets:
        net.dtype = torch.float32
    note = f"The CNN was trained in {agent.config.policy.precision} and computes in float32 in this file."
    return plain, (note,)


def input_names(policy: Policy, *, masked: bool) -> list[str]:
    """`obs`, or one name per part of a Dict observation; then `state` of a policy with memory, and `mask`."""
    names, space = ["obs"], policy.encoder.space
    if isinstance(space, spaces.Dict):
        names = [f"obs.{key}" if key in RESERVED else key for key in space.spaces]
    if policy.state_shape is not None:
        names.append("state")
    if masked:
        return [*names, "mask"]
    return names


def example_inputs(agent: Trained, *, masked: bool) -> tuple[Any, ...]:
    """A small batch to trace with: the observation, what is remembered, and, where the env has action masks, a mask."""
    n = 3  # torch takes a batch of 0 or 1 for a constant
    found: list[Any] = [tensors(as_given(allocate(agent.policy.encoder.space, (n,)), agent.observation_space))]
    state = agent.policy.initial_state(n)
    if state is not None:
        found.append(state)
    if masked:
        found.append(torch.ones(n, n_masked_actions(agent.action_space) or 0, dtype=torch.bool))
    return tuple(found)


def _has_masks(config: RunConfig) -> bool:
    if config.env.action_mask == "off":
        return False
    envs = make_envs(config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    try:
        return envs.has_action_mask
    finally:
        envs.close()


def _metadata(agent: Trained) -> dict[str, str]:
    try:
        version = importlib.metadata.version("gymnast")
    except importlib.metadata.PackageNotFoundError:
        version = "source"
    images = {}
    if agent.policy.encoder.nets:
        images = {"precision": "float32", "trained_in": agent.config.policy.precision}
    return {
        "gymnast_version": version,
        "run": agent.run.id if agent.run else "",
        "config": agent.config.name,
        "env": agent.config.env.id,
        "checkpoint": agent.checkpoint,
        "step": agent.checkpoint.removeprefix("step=") if agent.run else "",
        "observation_space": str(agent.observation_space),
        "action_space": str(agent.action_space),
        **images,
    }


# ---- the two formats -----------------------------------------------------------------------------------------------


def _trace(program: PolicyProgram, example: tuple[Any, ...]) -> Any:
    batch = torch.export.Dim("batch", min=1)
    obs: Any
    if isinstance(example[0], dict):
        obs = {key: {0: batch} for key in example[0]}
    else:
        obs = {0: batch}
    shapes = (obs, {0: batch}, {0: batch})[: len(example)]
    try:
        traced = torch.export.export(program, example, dynamic_shapes=shapes, strict=False)
    except Exception as error:  # every kind of layer fails in its own way
        raise cannot_export("with torch.export", error) from error
    for node in traced.graph.nodes:  # source lines of the machine that exported, paths and all
        node.meta.pop("stack_trace", None)
    return traced


def _torch(traced: Any, metadata: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    try:
        torch.export.save(traced, buffer, extra_files={METADATA: json.dumps(metadata, indent=1)})
    except Exception as error:
        raise cannot_export("with torch.export", error) from error
    return buffer.getvalue()


def _onnx(traced: Any, inputs: list[str], outputs: list[str], metadata: dict[str, str]) -> bytes:
    try:
        program = torch.onnx.export(
            traced, dynamo=True, input_names=inputs, output_names=outputs, verbose=False, external_data=False
        )
        assert program is not None
        model = program.model_proto
    except Exception as error:
        raise cannot_export("to ONNX", error) from error
    graph = model.graph
    symbol = graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for info in (*graph.input, *graph.output, *graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param == symbol:
                dim.dim_param = "batch"
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info):
        part.ClearField("metadata_props")
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    return bytes(model.SerializeToString())


def _need_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingPackageError("Exporting to ONNX", "export") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporters report their steps, and packages they would like, on both streams."""
    before, nothing = logging.root.manager.disable, io.StringIO()
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
