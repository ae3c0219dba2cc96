"""Closing an env: nothing is lost when that fails, so it ends no command and no training."""

from __future__ import annotations

import gymnasium as gym

from gymnast.envs.first_look import warn
from gymnast.errors import RAISED_BY_ENVS, in_one_line


def close(env: gym.Env) -> None:
    """Close an env; a `close` that raises is a warning, said once for all copies."""
    try:
        env.close()
    except RAISED_BY_ENVS as error:
        if env.spec:
            name = env.spec.id
        else:
            name = type(env.unwrapped).__name__
        warn(f"{name} close", f"{name} could not be closed: it raised {in_one_line(error)}.")
