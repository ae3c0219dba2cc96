"""When episodes are cut off."""

from __future__ import annotations

import math

from gymnast.config.schema import EnvConfig
from gymnast.config.wrappers import FrameSkip, TimeLimit
from gymnast.envs.registry import env_spec, rules_of
from gymnast.envs.wrappers import check
from gymnast.envs.wrappers.registry import FRAME_SKIP, arguments

UNLIMITED_STEPS = 10_000
"""An episode of an env without a time limit that lasts longer counts as one that does not end."""
ENDLESS_ADVICE = (
    "set env.time_limit (eval.env.time_limit for evaluation alone), or register the env with max_episode_steps=…"
)


def longest_episode(config: EnvConfig) -> int:
    """Steps after which an episode is given up: no time limit will end it."""
    return max(time_limit_of(config) or 0, UNLIMITED_STEPS)


def time_limit_of(config: EnvConfig) -> int | None:
    """Steps of the agent after which episodes are cut off at the latest."""
    check(config.wrappers)
    limit, inside = own_limit(config), True
    for settings in map(arguments, config.wrappers):
        if isinstance(settings, FrameSkip):
            inside = False
            if limit is not None:
                limit = math.ceil(limit / settings.least)
        elif isinstance(settings, TimeLimit) and not inside:
            if limit is None:
                limit = settings.steps
            else:
                limit = min(limit, settings.steps)
    return limit


def own_limit(config: EnvConfig) -> int | None:
    """Steps of the env itself: the config's, a `time_limit` wrapper's inside any frame skip, or the registered limit.

    A time limit outside a frame skip counts steps of the agent and is a wrapper of its own; it too replaces the registered one.
    """
    rules = rules_of(config)
    if rules is None or rules.most_steps is None:
        return _own_limit(config)
    # A cap of the rules stays, whatever the others say; ALE's registered limit is in frames.
    return min(rules.most_steps, _own_limit(config) or rules.most_steps)


def _own_limit(config: EnvConfig) -> int | None:
    names = [wrapper.id for wrapper in config.wrappers]
    if FRAME_SKIP in names:
        inside = names.index(FRAME_SKIP)
    else:
        inside = len(names)
    limits = [
        settings.steps for settings in map(arguments, config.wrappers[:inside]) if isinstance(settings, TimeLimit)
    ]
    if config.time_limit or limits:
        return config.time_limit or min(limits)
    if any(isinstance(arguments(wrapper), TimeLimit) for wrapper in config.wrappers[inside:]):
        return None
    return env_spec(config.id, config.module).max_episode_steps
