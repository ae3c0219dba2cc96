"""Plays one env with plain Gymnasium, without gymnast: `python foreign_probe.py MODULE ID KWARGS`, one line of JSON.

What fails here is the env's own, so a failure of gymnast on it is not gymnast's. It also tells what a step costs.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from typing import Any

import gymnasium as gym
import numpy as np

STEPS = 300
SECONDS = 10.0


def main() -> None:
    """Play, draw, and print what was found."""
    module, env_id, kwargs = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    found: dict[str, Any] = {"plays": False, "draws": False}
    try:
        importlib.import_module(module)
        env = gym.make(env_id, disable_env_checker=True, **kwargs)
        found |= {
            "observations": type(env.observation_space).__name__,
            "actions": type(env.action_space).__name__,
            "time_limit": env.spec.max_episode_steps if env.spec else None,
            "random_generator": type(getattr(env.unwrapped, "np_random", None)).__name__,
            "render_modes": [str(mode) for mode in (env.metadata or {}).get("render_modes", [])],
        }
        found |= play(env)
        env.close()
    except BaseException as error:  # an env may do anything, and exit too
        found["error"] = sentence(error)
        found["raised_in"] = traceback.extract_tb(error.__traceback__)[-1].filename.rpartition("site-packages/")[2]
    else:
        found |= drawn(env_id, kwargs)
    print("\n" + json.dumps(found), flush=True)


def play(env: gym.Env) -> dict[str, Any]:
    """Random actions for a while."""
    env.reset(seed=0)
    env.action_space.seed(0)
    ended, count, began = 0, 0, time.perf_counter()
    while count < STEPS and time.perf_counter() - began < SECONDS:
        action = env.action_space.sample()
        # nasim takes a plain int only, which no space of Gymnasium gives.
        _, _, terminated, truncated, _ = env.step(int(action) if isinstance(action, np.integer) else action)
        count += 1
        if terminated or truncated:
            ended += 1
            env.reset()
    milliseconds = 1000 * (time.perf_counter() - began) / count
    return {"plays": True, "milliseconds": round(milliseconds, 3), "ends_within": ended > 0}


def drawn(env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Whether the env gives a picture at all."""
    try:
        env = gym.make(env_id, disable_env_checker=True, render_mode="rgb_array", **kwargs)
        env.reset(seed=0)
        picture = env.render()
        return {"draws": bool(picture is not None and picture.any()), "picture": str(getattr(picture, "shape", None))}
    except BaseException as error:
        return {"draws": False, "no_picture": sentence(error)}


def sentence(error: BaseException) -> str:
    """The exception on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


if __name__ == "__main__":
    main()
