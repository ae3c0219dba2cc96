"""The env under test: made, reset and stepped with a watch on the line each value comes from."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import converter, plain, random_actions
from gymnast.envs.checking.findings import Findings, UnplayableError
from gymnast.envs.checking.source import EnvSource, Place, line_of_return
from gymnast.envs.make import make_one
from gymnast.envs.spaces import n_masked_actions
from gymnast.errors import RAISED_BY_ENVS, in_one_line

SEED = 123


@dataclass
class Subject:
    """One env by its config, what was found about it, and how to play it."""

    config: EnvConfig
    findings: Findings = field(default_factory=Findings)
    source: EnvSource = field(default_factory=lambda: EnvSource(gym.Env))
    has_mask: bool = False

    def make(self, render_mode: str | None = None) -> gym.Env:
        """A fresh copy, as training makes it."""
        return make_one(self.config, render_mode)

    def add(self, kind: str, what: str, place: Place | None) -> None:
        """Report a finding about this env."""
        self.findings.add(kind, what, place)

    def reset(self, env: gym.Env, seed: int | None = None) -> tuple[Any, dict[str, Any], Place | None]:
        """Observation, info and the line they come from; a crash or a wrong return is a finding and ends the check."""
        arguments: dict[str, Any] = {} if seed is None else {"seed": seed}
        try:
            value, line = line_of_return(type(env.unwrapped).reset, lambda: env.reset(**arguments))
        except RAISED_BY_ENVS as error:  # whatever the env raises is the finding
            call = f"reset({f'seed={seed}' if arguments else ''})"
            self.add("reset-crash", f"{call} raised {in_one_line(error)}.", self.source.raised(error))
            raise UnplayableError from error
        place = self.source.returned("reset", line)
        if not (isinstance(value, tuple) and len(value) == 2):
            self.add("reset-returns", f"reset returned {_shape_of(value)} instead of (observation, info).", place)
            raise UnplayableError
        return (*value, place)

    def step(self, env: gym.Env, action: Any) -> tuple[tuple[Any, ...], Place | None]:
        """The five values of a step and the line they come from; see `reset`."""
        shown = plain(action)
        try:
            value, line = line_of_return(type(env.unwrapped).step, lambda: env.step(action))
        except RAISED_BY_ENVS as error:  # whatever the env raises is the finding
            place = self.source.raised(error)
            returned = _wrong_return(error)
            if returned is not None:
                self.add(
                    "step-returns",
                    f"step returned {returned} instead of five values.",
                    self.source.returned("step", None),
                )
            else:
                self.add(
                    "step-crash",
                    f"step raised {in_one_line(error)} after action {shown}, which action_space holds.",
                    place,
                )
            raise UnplayableError from error
        place = self.source.returned("step", line)
        if not (isinstance(value, tuple) and len(value) == 5):
            self.add("step-returns", f"step returned {_shape_of(value)} instead of five values.", place)
            raise UnplayableError
        return value, place

    def actions(self, env: gym.Env, seed: int = 0) -> Actions:
        """Random actions, as training gives them to the env."""
        return Actions(env.action_space, self.has_mask, seed)


class Actions:
    """An endless row of random actions that respects masks."""

    def __init__(self, space: gym.Space, masked: bool, seed: int) -> None:
        self.space, self.masked = space, masked
        self._random = np.random.default_rng(seed)
        self._convert = converter(space)

    def draw(self, info: Any) -> Any:
        """One action that the mask in `info` allows."""
        mask = None
        if (
            self.masked
            and isinstance(info, dict)
            and np.size(info.get("action_mask", ())) == n_masked_actions(self.space)
        ):
            mask = np.asarray(info["action_mask"], np.bool_)[None]
        return self._convert(random_actions(self.space, 1, self._random, mask))[0]

    def edges(self) -> Iterator[Any]:
        """The ends of a simple action space: every choice, or the lowest and the highest values."""
        if isinstance(self.space, gym.spaces.Discrete):
            yield from (int(self.space.start) + i for i in range(min(int(self.space.n), 64)))
        elif isinstance(self.space, gym.spaces.MultiDiscrete):
            yield np.array(self.space.start, self.space.dtype)
            yield (self.space.start + self.space.nvec - 1).astype(self.space.dtype)
        elif isinstance(self.space, gym.spaces.Box) and self.space.is_bounded():
            yield self.space.low.copy()
            yield self.space.high.copy()


def takes(method: Any, argument: str) -> bool:
    """Whether a method can be called with this keyword."""
    parameters = inspect.signature(method).parameters
    return argument in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _wrong_return(error: BaseException) -> str | None:
    """What a step returned when a wrapper of Gymnasium failed to unpack it."""
    text = str(error)
    inside = error.__traceback__
    while inside is not None and inside.tb_next is not None:
        inside = inside.tb_next
    in_wrapper = inside is not None and "gymnasium" in inside.tb_frame.f_code.co_filename
    if in_wrapper and isinstance(error, (ValueError, TypeError)) and "unpack" in text:
        if "got 4" in text:
            return "four values (as gym did before 0.26)"
        return "something else"
    return None


def _shape_of(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} values"
    if value is None:
        return "nothing"
    return f"one {type(value).__name__}"
