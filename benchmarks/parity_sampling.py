"""What `envpool_parity.py` sees of an env: its first steps many times over, whole episodes, and counts of its transitions.

Everything here plays a `VectorEnv` and does not know whose it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from parity_tables import Outcome, State

from gymnast.envs.actions import random_actions
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.evaluation.quota import quotas
from gymnast.seeding import env_seeds

Policy = Callable[[np.ndarray, spaces.Space, np.random.Generator], np.ndarray]
"""Actions for observations `[N, K]`."""
NOISE = 0.1
"""Share of random actions in a scripted policy."""


def start(envs: VectorEnv, seed: int, turn: int = 0) -> tuple[StepRow, np.random.Generator]:
    """A row in which all digits fit, after a reset."""
    row = envs.new_row()
    row.obs = np.zeros(row.obs.shape, np.float64 if row.obs.dtype.kind == "f" else row.obs.dtype)  # type: ignore[union-attr]
    envs.reset(env_seeds(seed, "eval_envs", envs.n_envs, turn=turn), row)
    return row, np.random.default_rng([seed, turn])


# --- policies ------------------------------------------------------------------------------------------------------------


def uniform(obs: np.ndarray, space: spaces.Space, random: np.random.Generator) -> np.ndarray:
    """Uniform actions."""
    return random_actions(space, len(obs), random)


def scripted(script: Callable[[np.ndarray], np.ndarray] | None) -> Policy:
    """A rule with some random actions in between, so that episodes spread; without a rule the first action, or none at all."""

    def policy(obs: np.ndarray, space: spaces.Space, random: np.random.Generator) -> np.ndarray:
        actions = random_actions(space, len(obs), random)
        kept = random.random(len(obs)) >= NOISE
        actions[kept] = 0 if script is None else script(obs).astype(actions.dtype)[kept]
        return actions

    return policy


def _lander_aims(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gymnasium's heuristic for LunarLander: how much to turn and how much to rise."""
    contact = (s[:, 6] + s[:, 7]) > 0
    angle = np.clip(0.5 * s[:, 0] + s[:, 2], -0.4, 0.4)
    turn = np.where(contact, 0.0, (angle - s[:, 4]) * 0.5 - s[:, 5])
    rise = (0.55 * np.abs(s[:, 0]) - s[:, 1]) * 0.5 - s[:, 3] * 0.5
    return turn, np.where(contact, -0.5 * s[:, 3], rise)


def land(s: np.ndarray) -> np.ndarray:
    """LunarLander by its four engines."""
    turn, rise = _lander_aims(s)
    side = np.where(turn < -0.05, 3, np.where(turn > 0.05, 1, 0))
    return np.where((rise > np.abs(turn)) & (rise > 0.05), 2, side)


def land_continuously(s: np.ndarray) -> np.ndarray:
    """LunarLander by two throttles."""
    turn, rise = _lander_aims(s)
    return np.clip(np.stack([rise * 20 - 1, -turn * 20], 1), -1, 1)


# --- samples -------------------------------------------------------------------------------------------------------------


@dataclass
class Moment:
    """Many episodes after the same number of steps."""

    seen: np.ndarray
    """`[n, K]`: observation, last reward, return so far; of the episodes that go on."""
    alive: np.ndarray
    """How many go on, and how many have ended."""


def moments(envs: VectorEnv, policy: Policy, marks: tuple[int, ...], rounds: int, seed: int) -> dict[int, Moment]:
    """The same moments of `rounds × n_envs` episodes; 0 is the reset."""
    seen: dict[int, list[np.ndarray]] = {mark: [] for mark in marks}
    for turn in range(rounds):
        row, random = start(envs, seed, turn)
        whole, returns, reward = np.ones(envs.n_envs, np.bool_), np.zeros(envs.n_envs), np.zeros(envs.n_envs)
        for step in range(max(marks) + 1):
            if step in seen:
                flat = np.asarray(row.obs, np.float64).reshape(envs.n_envs, -1)
                seen[step].append(np.column_stack([flat, reward, returns])[whole])
            obs = np.asarray(row.obs).reshape(envs.n_envs, -1)
            ended = [episode.index for episode in envs.step(policy(obs, envs.action_space, random), row)]
            reward = np.array(row.reward, np.float64)
            returns += reward
            whole[ended] = False
    total = rounds * envs.n_envs
    joined = {mark: np.concatenate(rows) for mark, rows in seen.items()}
    return {mark: Moment(rows, np.array([len(rows), total - len(rows)])) for mark, rows in joined.items()}


@dataclass
class Episodes:
    """Whole episodes."""

    returns: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray
    """1 terminated, 2 cut off, 3 both at once."""


def episodes(envs: VectorEnv, policy: Policy, count: int, seed: int) -> Episodes:
    """Episodes of equal number per slot, so that short ones are not favoured."""
    row, random = start(envs, seed)
    left = quotas(count, envs.n_envs)
    found: list[tuple[float, int, int]] = []
    while left.any():
        obs = np.asarray(row.obs).reshape(envs.n_envs, -1)
        for episode in envs.step(policy(obs, envs.action_space, random), row):
            if left[episode.index]:
                left[episode.index] -= 1
                end = int(episode.terminated) + 2 * int(row.truncated[episode.index])
                found.append((episode.ret, episode.length, end))
    returns, lengths, ends = map(np.array, zip(*found))
    return Episodes(returns, lengths, ends)


# --- tabular envs --------------------------------------------------------------------------------------------------------


def first_states(envs: VectorEnv, count: int, seed: int, *, marked: bool) -> Counter[State]:
    """Where episodes begin."""
    seen: Counter[State] = Counter()
    row, random = start(envs, seed)
    new = np.ones(envs.n_envs, np.bool_)
    while sum(seen.values()) < count:
        seen.update(_states(row.obs, new if marked else None, only=new))
        new[:] = False
        obs = np.asarray(row.obs).reshape(envs.n_envs, -1)
        new[[episode.index for episode in envs.step(uniform(obs, envs.action_space, random), row)]] = True
    return seen


def transitions(envs: VectorEnv, count: int, seed: int, *, marked: bool) -> dict[tuple[State, int], Counter[Outcome]]:
    """What followed from each state and action. Half of the time a state is given the action it was given least often."""
    row, random = start(envs, seed)
    new = np.ones(envs.n_envs, np.bool_)
    n_actions = int(envs.action_space.n)  # type: ignore[attr-defined]
    tried: defaultdict[State, np.ndarray] = defaultdict(lambda: np.zeros(n_actions))
    seen: defaultdict[tuple[State, int], Counter[Outcome]] = defaultdict(Counter)
    for _ in range(-(-count // envs.n_envs)):
        before = _states(row.obs, new if marked else None)
        actions = random_actions(envs.action_space, envs.n_envs, random)
        for i in np.flatnonzero(random.random(envs.n_envs) < 0.5):
            actions[i] = tried[before[i]].argmin()
        new = np.zeros(envs.n_envs, np.bool_)
        ended = {episode.index: episode for episode in envs.step(actions, row)}
        after = _states(row.obs, new if marked else None)
        for i, (state, action) in enumerate(zip(before, actions.tolist())):
            tried[state][action] += 1
            following = after[i]
            if i in ended:
                following = _states(np.asarray(ended[i].final_obs)[None], np.zeros(1, np.bool_) if marked else None)[0]
                new[i] = True
            seen[state, action][following, float(row.reward[i]), bool(row.terminated[i])] += 1
    return dict(seen)


def _states(obs: np.ndarray, new: np.ndarray | None, only: np.ndarray | None = None) -> list[State]:  # type: ignore[type-arg]
    """Observations as states; `new` is the last number where there is one."""
    flat = np.asarray(obs).reshape(len(obs), -1).astype(np.int64)
    if new is not None:
        flat = np.column_stack([flat, new])
    if only is not None:
        flat = flat[only]
    return [tuple(state) for state in flat.tolist()]
