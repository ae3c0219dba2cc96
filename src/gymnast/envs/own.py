"""Envs that are in no registry: a class or a function by import path, or an object that Python gave."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from gymnast.errors import UsageError


class Copies:
    """Makes an env by copying one that is never stepped."""

    def __init__(self, env: gym.Env) -> None:
        self._env = env
        self.max_episode_steps = None if env.spec is None else env.spec.max_episode_steps

    def __call__(self) -> gym.Env:
        """A fresh copy, wrappers included."""
        return copy.deepcopy(self._env)


def copies_of(env: gym.Env) -> Copies:
    """Copies of an instance; a UsageError if it cannot be copied."""
    try:
        template = copy.deepcopy(env)
    except Exception as error:  # deepcopy fails in as many ways as there are things that cannot be copied
        raise UsageError(
            f"The env {type(env.unwrapped).__name__} cannot be copied ({type(error).__name__}: {error}), and training needs "
            "several: give a function that makes one, for example gymnast.train(lambda: MyEnv())."
        ) from error
    return Copies(template)


def spec_of(env_id: str, made: Any) -> EnvSpec:
    """Gymnasium's record for a class or function that makes an env."""
    if isinstance(made, type) and not issubclass(made, gym.Env):
        raise UsageError(f"'{env_id}' is no Gymnasium environment: {made.__name__} is not derived from gymnasium.Env.")
    if not callable(made):
        raise UsageError(f"'{env_id}' is a {type(made).__name__}: a class, or a function that makes an env, is needed.")
    limit = getattr(made, "max_episode_steps", None)
    entry: Any = made if isinstance(made, type) else _factory(env_id, made)
    # Everything else Gymnasium would add (order checks, passive checks) is ours to decide in `make_one`.
    return EnvSpec(id=env_id, entry_point=entry, max_episode_steps=limit if isinstance(limit, int) else None)


def _factory(env_id: str, make: Callable[..., Any]) -> Callable[..., gym.Env]:
    """A function that takes `render_mode` although most factories do not."""

    def env(render_mode: str | None = None, **kwargs: Any) -> gym.Env:
        if render_mode is not None and _takes(make, "render_mode"):
            kwargs["render_mode"] = render_mode
        made = make(**kwargs)
        if not isinstance(made, gym.Env):
            raise UsageError(
                f"'{env_id}' gave a {type(made).__name__}: a function that makes a gymnasium.Env is needed."
            )
        if render_mode is not None and made.render_mode != render_mode:
            _draw(made, render_mode, env_id)
        return made

    return env


def _takes(make: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.name == name or one.kind is one.VAR_KEYWORD for one in parameters)


def _draw(env: gym.Env, render_mode: str, env_id: str) -> None:
    """Have an env that was made without a render mode draw."""
    if render_mode not in (env.metadata or {}).get("render_modes", ()):
        raise TypeError(f"'{env_id}' does not offer render_mode '{render_mode}'")
    env.unwrapped.render_mode = render_mode
