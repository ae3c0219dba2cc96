"""Wrappers by name (ENV-8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnast.config.schema import WrapperConfig
from gymnast.envs.vector import VectorEnv
from gymnast.envs.wrappers import vector
from gymnast.errors import ConfigError, did_you_mean

VECTOR_WRAPPERS: dict[str, Callable[..., VectorEnv]] = {
    "action_clip": vector.ActionClip,
    "reward_clip": vector.RewardClip,
    "reward_scale": vector.RewardScale,
    "one_hot": vector.OneHot,
    "array": vector.ArrayEncoding,
    "observation_stack": vector.ObservationStack,
}
TIME_LIMIT = "time_limit"
"""Applied when the env is made, because it decides when a slot is reset."""


def check_names(wrappers: list[WrapperConfig]) -> None:
    """Refuse unknown names."""
    known = [*VECTOR_WRAPPERS, TIME_LIMIT]
    for wrapper in wrappers:
        if wrapper.id not in known:
            raise ConfigError(
                f"Unknown wrapper '{wrapper.id}'.{did_you_mean(wrapper.id, known)} Known: {', '.join(known)}."
            )


def wrap(envs: VectorEnv, wrappers: list[WrapperConfig]) -> VectorEnv:
    """Apply wrappers in order, the last one outermost."""
    for wrapper in wrappers:
        if wrapper.id == TIME_LIMIT:
            continue
        args: dict[str, Any] = wrapper.args
        try:
            envs = VECTOR_WRAPPERS[wrapper.id](envs, **args)
        except TypeError as error:
            raise ConfigError(f"Wrapper '{wrapper.id}' cannot take {args}: {error}.") from None
    return envs
