"""Wrappers by name (ENV-8): checked, put in order, and applied around each env or around the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from gymnast.config.schema import EnvConfig, WrapperConfig
from gymnast.config.wrappers import FrameSkip
from gymnast.envs.registry import env_spec, rules_of
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers.registry import FRAME_SKIP, TIME_LIMIT, arguments, kind_of
from gymnast.errors import ConfigError

Wrappers = Sequence[WrapperConfig]


def check(wrappers: Wrappers) -> None:
    """Refuse unknown names, wrong arguments and impossible orders."""
    for wrapper in wrappers:
        arguments(wrapper)
    arrange(wrappers)


def arrange(wrappers: Wrappers, *, single_envs: bool = True) -> tuple[list[WrapperConfig], list[WrapperConfig]]:
    """The wrappers around each env and those around the batch; without single envs all must be of the batch."""
    inner: list[WrapperConfig] = []
    outer: list[WrapperConfig] = []
    for wrapper in wrappers:
        kind = kind_of(wrapper.id)
        if kind.single is not None and (kind.batch is None or (single_envs and not outer)):
            for other in outer:
                if kind_of(other.id).effect not in kind.commutes:
                    raise ConfigError(_wrong_order(wrapper, other))
            inner.append(wrapper)
        else:
            outer.append(wrapper)
    return inner, outer


def _wrong_order(wrapper: WrapperConfig, other: WrapperConfig) -> str:
    return (
        f"Wrapper '{wrapper.id}' cannot come after '{other.id}': it runs inside each env, before anything that works "
        f"on all envs at once, and the two orders are not the same. List '{wrapper.id}' before '{other.id}'."
    )


def needs_single_envs(wrappers: Wrappers) -> list[str]:
    """Names of those that must run around each env, which vector envs that step all copies themselves do not let them."""
    return [wrapper.id for wrapper in wrappers if kind_of(wrapper.id).batch is None and wrapper.id != TIME_LIMIT]


def drawing_mode(wrappers: Wrappers) -> str | None:
    """The `render_mode` an env needs because one of its wrappers has it draw itself."""
    if any(kind_of(wrapper.id).draws for wrapper in wrappers):
        return "rgb_array"
    return None


def refuse_single(wrappers: Wrappers, vectorization: str) -> None:
    """Say why a vector env cannot have these wrappers."""
    if names := needs_single_envs(wrappers):
        raise ConfigError(
            f"Wrapper '{names[0]}' runs around each env, but env.vectorization is {vectorization}, which steps all "
            "envs at once: set it to auto, inprocess or workers."
        )


def wrap_single(env: gym.Env, wrappers: Wrappers) -> gym.Env:
    """Apply the wrappers of one env; a time limit inside a frame skip is the env's own (see `time_limits`)."""
    skips = False
    for wrapper in arrange(wrappers)[0]:
        skips |= wrapper.id == FRAME_SKIP
        if wrapper.id != TIME_LIMIT or skips:
            env = apply(env, wrapper, kind_of(wrapper.id).single)
    return env


def wrap(envs: VectorEnv, wrappers: Wrappers, *, single_envs: bool = True) -> VectorEnv:
    """Apply the wrappers of the batch, the last one outermost."""
    for wrapper in arrange(wrappers, single_envs=single_envs)[1]:
        envs = apply(envs, wrapper, kind_of(wrapper.id).batch)
    return envs


def apply(inner: Any, wrapper: WrapperConfig, make: Any) -> Any:
    """One wrapper with its checked arguments."""
    try:
        return make(inner, **dict(arguments(wrapper)))
    except TypeError as error:  # a plug-in without a model of its arguments
        raise ConfigError(f"Wrapper '{wrapper.id}' cannot take {wrapper.args}: {error}.") from error


def skips_frames(wrappers: Wrappers) -> bool:
    """Whether a step of the agent may be several of the env."""
    return any(wrapper.id == FRAME_SKIP for wrapper in wrappers)


def frames_per_step(config: EnvConfig) -> float | None:
    """Frames of the env per step of the agent, the env's own skipping (ALE's) included; None if the policy decides."""
    own = {**env_spec(config.id, config.module).kwargs, **config.kwargs}.get("frameskip", 1)
    rules = rules_of(config)
    if rules is not None:
        own = rules.frames_per_step
    frames = float(own) if isinstance(own, int) else sum(range(*own)) / len(range(*own))  # ALE's range excludes its end
    for settings in map(arguments, config.wrappers):
        if isinstance(settings, FrameSkip):
            if settings.mean is None:
                return None
            frames *= settings.mean
    return frames
