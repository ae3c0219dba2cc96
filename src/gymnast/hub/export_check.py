"""Whether an exported file computes what the policy computes, on random observations."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import spaces

from gymnast.envs.actions import executed
from gymnast.envs.spaces import Observation, starts
from gymnast.errors import GymnastError
from gymnast.evaluation.evaluate import tensors
from gymnast.policies.base import Policy
from gymnast.policies.distributions import IMPOSSIBLE

OBSERVATIONS = 1_000
TOLERANCE = 1e-4
"""Largest allowed difference, in units of the output's own size (at least 1); float32 rounding stays far below."""
_BATCHES = [slice(start, start + 100) for start in range(0, OBSERVATIONS, 100)]
"""What is computed at once: the layers of a CNN hold many times what an image does."""
_WIDE = 1e6
"""Bounds beyond this say nothing about what observations look like."""


class Checked(Protocol):
    """The policy to compare with."""

    policy: Policy
    observation_space: spaces.Space
    action_space: spaces.Space


@dataclass(frozen=True)
class Check:
    """Outcome of the comparison."""

    observations: int
    ties: int
    """Observations where two actions are equally likely to rounding and the other one was taken."""
    differences: dict[str, float]
    """Largest absolute difference by output."""

    whole_actions: bool
    """Whether some part of the action is a choice."""

    def sentence(self) -> str:
        """`1,000 observations: actions equal, largest difference of logits 2e-07, value 1e-06`."""
        ties = f"actions equal but for {self.ties} ties, " if self.ties else "actions equal, "
        rest = ", ".join(f"{name} {value:.0e}" for name, value in self.differences.items())
        if not self.whole_actions:
            ties = ""
        return f"{self.observations:,} observations: {ties}largest difference of {rest}"


Run = Callable[[list[np.ndarray]], list[np.ndarray]]


def check_export(raw: bytes, format: str, agent: Checked, inputs: list[str], outputs: list[str]) -> Check:
    """Compare the file's outputs with the policy's; a GymnastError when they are not the same."""
    policy, space = agent.policy, agent.policy.encoder.space
    rng = np.random.default_rng(0)
    obs = random_observations(space, OBSERVATIONS, rng)
    mask = None
    if inputs[-1] == "mask":
        mask = random_masks(agent.action_space, OBSERVATIONS, rng)
    if format == "onnx":
        run = _onnx_runner(raw, inputs, outputs)
    else:
        run = _torch_runner(raw, space, outputs)
    given = as_given(obs, agent.observation_space)
    if isinstance(given, dict):
        parts = list(given.values())
    else:
        parts = [given]
    state = None
    if policy.state_shape is not None:
        state = rng.uniform(-1, 1, size=(OBSERVATIONS, *policy.state_shape)).astype(np.float32)
    flat = [*parts, *(array for array in (state, mask) if array is not None)]
    single = dict(zip(outputs, run([part[:1] for part in flat]), strict=True))
    batches = [run([part[rows] for part in flat]) for rows in _BATCHES]
    got = {name: np.concatenate([batch[i] for batch in batches]) for i, name in enumerate(outputs)}
    action, params, value, after = _own(policy, obs, mask, state)
    want = named_actions(action, agent.action_space)
    actions = list(want)
    want["value"] = value
    if after is not None:
        want["next_state"] = after
    with torch.inference_mode():
        named = [name for name in outputs if name not in want]
        theirs = torch.from_numpy(np.concatenate([got[name] for name in named], -1))
        follows = named_actions(policy.distribution.sample(theirs, None).numpy(), agent.action_space)
    sizes = np.cumsum([got[name].shape[-1] for name in named])[:-1]
    want |= dict(zip(named, np.split(params, sizes, -1)))
    differences = {name: _difference(name, got[name], want[name]) for name in outputs if _real(want[name])}
    ties = np.zeros(OBSERVATIONS, np.bool_)
    for name in actions:
        _difference(f"{name} of a batch of one", single[name], got[name][:1])
        if not _real(want[name]):
            # Where two actions are equally likely, rounding decides; the file must then still agree with its own logits.
            wrong = int(_rows_apart(got[name], follows[name]).sum())
            if wrong:
                raise _unequal(
                    f"{wrong} of {OBSERVATIONS:,} values of {name} are not the most likely of its own {named[0]}"
                )
            ties |= _rows_apart(got[name], want[name])
    return Check(OBSERVATIONS, int(ties.sum()), differences, not all(_real(want[name]) for name in actions))


def as_given(obs: Observation, space: spaces.Space) -> Observation:
    """A canonical batch as the env gives it: choices count from where its space starts."""
    for name, start in starts(space).items():
        if isinstance(obs, dict):
            obs = {**obs, name: obs[name] + start}
        else:
            obs = obs + start
    return obs


def _own(
    policy: Policy, obs: Observation, mask: np.ndarray | None, state: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """The policy's actions, distribution parameters and values, and what it remembers afterwards."""
    found, afters = [], []
    with torch.inference_mode():
        for rows in _BATCHES:
            some = tensors({key: part[rows] for key, part in obs.items()} if isinstance(obs, dict) else obs[rows])
            masks = None
            if mask is not None:
                masks = torch.from_numpy(mask[rows])
            before = None if state is None else torch.from_numpy(state[rows])
            outputs = policy.act(some, None, masks, before)
            found.append((outputs["action"].numpy(), outputs["params"].numpy(), policy.values(some, before).numpy()))
            if state is not None:
                afters.append(outputs["state"].numpy())
    actions, parameters, values = (np.concatenate(kind) for kind in zip(*found))
    return actions, parameters, values, np.concatenate(afters) if afters else None


def action_names(space: spaces.Space) -> list[str]:
    """`action`, or one name per part of a Dict or Tuple action: `action.gear`, `action.0`."""

    def inner(part: spaces.Space, name: str) -> list[str]:
        if isinstance(part, spaces.Dict):
            return [leaf for key, value in part.spaces.items() for leaf in inner(value, f"{name}.{key}")]
        if isinstance(part, spaces.Tuple):
            return [leaf for key, value in enumerate(part.spaces) for leaf in inner(value, f"{name}.{key}")]
        return [name]

    return inner(space, "action")


def named_actions(action: np.ndarray, space: spaces.Space) -> dict[str, np.ndarray]:
    """What the env is given, part by part."""

    def leaves(value: Any) -> list[np.ndarray]:
        if isinstance(value, dict):
            value = tuple(value.values())
        if isinstance(value, tuple):
            return [leaf for part in value for leaf in leaves(part)]
        return [value]

    return dict(zip(action_names(space), leaves(executed(action, space)), strict=True))


def _rows_apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.asarray((first != second).reshape(len(first), -1).any(-1))


def _real(array: np.ndarray) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _difference(name: str, got: np.ndarray, want: np.ndarray) -> float:
    """Largest absolute difference, refused when it is more than rounding."""
    if got.shape != want.shape:
        raise _unequal(f"{name} has the shape {list(got.shape)} instead of {list(want.shape)}")
    if not np.isfinite(got).all():
        raise _unequal(f"{name} is not finite")
    largest = float(np.abs(got - want).max(initial=0.0))
    scale = float(np.abs(want[want > IMPOSSIBLE / 2]).max(initial=1.0))
    if largest > TOLERANCE * scale:
        raise _unequal(f"{name} differs by up to {largest:.2g}")
    return largest


def _unequal(what: str) -> GymnastError:
    return GymnastError(
        f"The exported program does not compute what the policy computes: {what}. Nothing was written. "
        "Try the other format with --format; --no-verify writes the file all the same."
    )


def _onnx_runner(raw: bytes, inputs: list[str], outputs: list[str]) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    return lambda arrays: list(session.run(outputs, dict(zip(inputs, arrays, strict=True))))


def _torch_runner(raw: bytes, space: spaces.Space, outputs: list[str]) -> Run:
    module = torch.export.load(io.BytesIO(raw)).module()

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        values: list[Any] = [torch.from_numpy(array) for array in arrays]
        if isinstance(space, spaces.Dict):
            n = len(space.spaces)
            values = [dict(zip(space.spaces, values[:n])), *values[n:]]
        with torch.no_grad():
            found = module(*values)
        return [found[name].numpy() for name in outputs]

    return run


# ---- random inputs -------------------------------------------------------------------------------------------------


def random_observations(space: spaces.Space, n: int, rng: np.random.Generator) -> Observation:
    """`n` canonical observations; unbounded numbers are drawn between −10 and 10."""
    if isinstance(space, spaces.Dict):
        return {key: np.asarray(random_observations(part, n, rng)) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return rng.integers(int(space.n), size=n)
    if isinstance(space, spaces.MultiDiscrete):
        return rng.integers(space.nvec, size=(n, *space.shape))
    if isinstance(space, spaces.Box):
        return _random_box(space, n, rng)
    return rng.integers(2, size=(n, *(space.shape or ())))


def _random_box(space: spaces.Box, n: int, rng: np.random.Generator) -> np.ndarray:
    if space.dtype == np.uint8:  # images are large: no detour over floats
        return np.clip(rng.integers(256, size=(n, *space.shape), dtype=np.uint8), space.low, space.high)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    low = np.where(np.abs(low) < _WIDE, low, np.minimum(-10.0, high - 20.0))
    high = np.where(np.abs(high) < _WIDE, high, np.maximum(10.0, low + 20.0))
    drawn = rng.uniform(low, high, size=(n, *space.shape))
    if np.issubdtype(space.dtype, np.floating):
        return drawn.astype(np.float32)
    return np.rint(drawn).astype(space.dtype)


def random_masks(space: spaces.Space, n: int, rng: np.random.Generator) -> np.ndarray:
    """Masks with at least one allowed action per choice."""
    sizes = [int(space.n)] if isinstance(space, spaces.Discrete) else [int(size) for size in np.ravel(space.nvec)]  # type: ignore[attr-defined]
    parts = []
    for size in sizes:
        allowed = rng.random((n, size)) < 0.5
        allowed[np.arange(n), rng.integers(size, size=n)] = True
        parts.append(allowed)
    return np.concatenate(parts, -1)
