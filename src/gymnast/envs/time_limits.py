"""When episodes are cut off."""

from __future__ import annotations

import math

from gymnast.config.schema import EnvConfig
from gymnast.config.wrappers import FrameSkip, TimeLimit
from gymnast.envs.registry import env_spec
from gymnast.envs.wrappers import check
from gymnast.envs.wrappers.registry import FRAME_SKIP, arguments


def time_limit_of(config: EnvConfig) -> int | None:
    """Steps of the agent after which episodes are cut off at the latest."""
    check(config.wrappers)
    limit, inside = own_limit(config), True
    for settings in map(arguments, config.wrappers):
        if isinstance(settings, FrameSkip):
            limit, inside = None if limit is None else math.ceil(limit / settings.least), False
        elif isinstance(settings, TimeLimit) and not inside:
            limit = settings.steps if limit is None else min(limit, settings.steps)
    return limit


def own_limit(config: EnvConfig) -> int | None:
    """Steps of the env itself: the config's, a `time_limit` wrapper's inside any frame skip, or the registered limit.

    A time limit outside a frame skip counts steps of the agent and is a wrapper of its own; it too replaces the registered one.
    """
    if config.atari is None:
        return _own_limit(config)
    # ALE's registered limit is in frames; it stays whatever the others say.
    cap = math.ceil(config.atari.frame_cap / config.atari.skip)
    return min(cap, _own_limit(config) or cap)


def _own_limit(config: EnvConfig) -> int | None:
    names = [wrapper.id for wrapper in config.wrappers]
    inside = names.index(FRAME_SKIP) if FRAME_SKIP in names else len(names)
    limits = [
        settings.steps for settings in map(arguments, config.wrappers[:inside]) if isinstance(settings, TimeLimit)
    ]
    if config.time_limit or limits:
        return config.time_limit or min(limits)
    if any(isinstance(arguments(wrapper), TimeLimit) for wrapper in config.wrappers[inside:]):
        return None
    return env_spec(config.id, config.module).max_episode_steps
