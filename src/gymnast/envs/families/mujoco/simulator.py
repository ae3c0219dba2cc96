"""Exact state of MuJoCo envs, and one place for the simulator's warnings."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from gymnast.envs.families.mujoco.drawing import NO_RENDERER, choose_renderer
from gymnast.envs.generators import load_generator, save_generator
from gymnast.errors import EnvError
from gymnast.later import Later
from gymnast.redaction import logger

if TYPE_CHECKING:
    import mujoco
else:
    mujoco = Later("mujoco")

log = logger("gymnast")

DERIVED = ("xpos", "xipos")
"""Positions of bodies as the last step computed them. They lag behind `qpos` by one substep, and Ant and Humanoid take the
speed that they reward from them, so computing them anew would change the next reward."""


def save(env: gym.Env) -> dict[str, Any]:
    """What the integrator needs (positions, velocities, time, actuators, controls, warm start), bit for bit."""
    bare: Any = env.unwrapped
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(bare.model, kind))
    mujoco.mj_getState(bare.model, bare.data, state, kind)
    derived = {name: np.array(getattr(bare.data, name)) for name in DERIVED}
    return {"state": state, "derived": derived, "generator": save_generator(env)}


def load(env: gym.Env, state: dict[str, Any]) -> None:
    """Set it. All that follows from it is computed once for rendering, which moves the warm start: hence set twice."""
    bare: Any = env.unwrapped
    kind, saved = mujoco.mjtState.mjSTATE_INTEGRATION, np.asarray(state["state"], np.float64)
    mujoco.mj_setState(bare.model, bare.data, saved, kind)
    mujoco.mj_forward(bare.model, bare.data)
    mujoco.mj_setState(bare.model, bare.data, saved, kind)
    for name, value in state["derived"].items():
        getattr(bare.data, name)[...] = value
    load_generator(env, state["generator"])


def prepare(spec: EnvSpec, render_mode: str | None) -> None:
    """Before the simulator is imported: choose how it draws, and receive its warnings instead of letting it write files."""
    if not choose_renderer() and render_mode is not None:
        raise EnvError(f"{spec.id} cannot render. {NO_RENDERER}")
    _listen()


@functools.cache
def _listen() -> None:
    """MuJoCo prints each warning and appends it to MUJOCO_LOG.TXT in the current folder, for each env anew."""
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_say_once)


@functools.cache
def _say_once(text: str) -> None:
    # Old keywords in the files that Gymnasium ships are not the user's business.
    level = logging.DEBUG if "deprecated" in text else logging.WARNING
    log.log(level, "MuJoCo: %s", " ".join(text.split()))
