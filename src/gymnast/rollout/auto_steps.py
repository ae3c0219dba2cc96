"""`n_steps: auto`: how long a rollout must be for rewards to appear in it (CFG-5)."""

from __future__ import annotations

import numpy as np

from gymnast import seeding
from gymnast.envs.actions import random_actions
from gymnast.envs.vector import VectorEnv

LEAST, MOST, UNKNOWN = 16, 2048, 128


def suggest_n_steps(rewards: np.ndarray) -> tuple[int, str]:
    """Four times the mean number of steps between rewards that differ from the usual one, to a power of two; and why."""
    values, counts = np.unique(rewards, return_counts=True)
    if len(values) <= 1:
        return UNKNOWN, "every step pays the same, so there is nothing to wait for"
    usual = values[counts.argmax()]
    gap = rewards.size / int((rewards != usual).sum())
    n_steps = int(np.clip(2 ** np.ceil(np.log2(4 * gap)), LEAST, MOST))
    if gap < 2:
        return n_steps, "rewards differ from step to step, so a short rollout already tells good from bad"
    return n_steps, f"a reward other than {usual:g} comes every {gap:.3g} steps; four of them fit"


def measure_n_steps(envs: VectorEnv, seed: int, steps: int = 500) -> int:
    """The suggestion for what random actions earn."""
    random = np.random.default_rng(seeding.sequence(seed, "warmup"))
    row = envs.new_row()
    envs.reset(seeding.env_seeds(seed, "warmup", envs.n_envs), row)
    rewards = np.zeros((steps, envs.n_envs), np.float32)
    for t in range(steps):
        envs.step(random_actions(envs.action_space, envs.n_envs, random, row.mask), row)
        rewards[t] = row.reward
    return suggest_n_steps(rewards)[0]
