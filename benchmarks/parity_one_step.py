"""How Gymnasium's env goes on from a state EnvPool's was in, for envs whose observation tells the state (`envpool_parity.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from parity_sampling import Policy, start

from gymnast.envs.actions import converter
from gymnast.envs.vector import VectorEnv

TRANSITIONS = 2000
TOLERANCE = 1e-3
AGREEING = 0.99
"""Share of steps that have to agree: MuJoCo's solver starts from the last acceleration, which is not observed."""
CLIPPED = ("Hopper", "Walker2d")
"""Speeds are cut off at 10 in their observation: beyond, the state is not known."""
LAGGING = "Ant"
"""Its reward reads a body position that lags one substep behind the state, so no state brings it back: Gymnasium's own env, put
into its own states, repeats all observations to 1e-13 and a third of the rewards not."""


def _put_pendulum(env: Any, obs: np.ndarray) -> None:
    env.state = np.array([np.arctan2(obs[1], obs[0]), obs[2]])


def _put_acrobot(env: Any, obs: np.ndarray) -> None:
    env.state = np.array([np.arctan2(obs[1], obs[0]), np.arctan2(obs[3], obs[2]), obs[4], obs[5]])


def _put_vector(env: Any, obs: np.ndarray) -> None:
    env.state, env.steps_beyond_terminated = np.array(obs, np.float64), None


def _put_mujoco(env: Any, obs: np.ndarray) -> None:
    hidden = env.model.nq + env.model.nv - (27 if env.model.nq == 15 else len(obs))
    state = np.concatenate([np.zeros(hidden), obs])
    env.set_state(state[: env.model.nq], state[env.model.nq : env.model.nq + env.model.nv])


PUT: dict[str, Callable[[Any, np.ndarray], None]] = {
    "CartPole": _put_vector,
    "MountainCar": _put_vector,
    "Pendulum": _put_pendulum,
    "Acrobot": _put_acrobot,
    **dict.fromkeys(("HalfCheetah", "Hopper", "Walker2d", "Ant"), _put_mujoco),
}


def putter(env_id: str) -> Callable[[Any, np.ndarray], None] | None:
    """What puts this env into the state of an observation; None where that does not say enough."""
    return next((put for name, put in PUT.items() if env_id.startswith(name)), None)


def one_step(env: gym.Env, envs: VectorEnv, policies: tuple[Policy, ...], seed: int) -> dict[str, Any]:
    """Transitions of `envs`, repeated by `env` from the same states: observations, rewards and ends by themselves."""
    assert env.spec is not None
    env_id, inner = env.spec.id, env.unwrapped
    put = putter(env_id)
    assert put is not None
    inner.reset(seed=0)
    own_actions = converter(envs.action_space)
    same: dict[str, list[bool]] = {"observations": [], "rewards": [], "ends": []}
    largest = 0.0
    for turn, policy in enumerate(policies):
        row, random = start(envs, seed, turn)
        for _ in range(-(-TRANSITIONS // (envs.n_envs * len(policies)))):
            before = np.array(row.obs)
            actions = policy(before, envs.action_space, random)
            final = {episode.index: episode.final_obs for episode in envs.step(actions, row)}
            given = own_actions(actions)
            for i in range(envs.n_envs):
                if env_id.startswith(CLIPPED) and np.abs(before[i]).max() >= 10:
                    continue
                put(inner, before[i])
                obs, reward, terminated, _, _ = inner.step(given[i])
                after, paid, end = final.get(i, row.obs[i]), float(row.reward[i]), bool(row.terminated[i])  # type: ignore[index]
                error = float((np.abs(np.asarray(obs, np.float64) - after) / (1 + np.abs(after))).max())
                largest = max(largest, error)
                same["observations"].append(error <= TOLERANCE)
                if not env_id.startswith(LAGGING):
                    same["rewards"].append(abs(float(reward) - paid) <= TOLERANCE * (1 + abs(paid)))
                if terminated or end:
                    same["ends"].append(bool(terminated) == end)
    shares = {name: round(float(np.mean(agree)), 4) for name, agree in same.items() if agree}
    counts = {"n": len(same["observations"]), "ended": len(same["ends"]), "largest_error": float(f"{largest:.2g}")}
    return {"pass": min(shares.values()) >= AGREEING, **shares, **counts}
