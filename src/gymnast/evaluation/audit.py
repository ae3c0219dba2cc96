"""What the rewards, episodes and observations of an env look like under some way of acting (ENV-12)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gymnast.envs.actions import random_actions
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.errors import EnvError
from gymnast.evaluation.observed import Component, ObservedRanges
from gymnast.rollout.auto_steps import suggest_n_steps

Act = Callable[[StepRow], np.ndarray]
MAX_EPISODE_STEPS = 100_000
OUTLIER_MADS = 6
SPARSE = 0.95
BINS = 12


@dataclass
class Audit:
    """All steps of whole episodes."""

    rewards: np.ndarray
    """[steps] in the order of slots and episodes."""
    steps: np.ndarray
    """[steps] how far into its episode each was."""
    returns: np.ndarray
    """[episodes] in the env's own reward."""
    lengths: np.ndarray
    terminated: np.ndarray
    components: list[Component] = field(default_factory=list)

    def numbers(self) -> dict[str, Any]:
        """Everything as plain values, for `--json` and for printing."""
        n_steps, reason = suggest_n_steps(self.rewards)
        return {
            "episodes": len(self.returns),
            "steps": len(self.rewards),
            "reward": {**_spread(self.rewards), "zero": float((self.rewards == 0).mean())},
            "outliers": self.outliers(),
            "histogram": histogram(self.rewards),
            "gaps": self.gaps(),
            "returns": _spread(self.returns),
            "lengths": _spread(self.lengths),
            "terminated": float(self.terminated.mean()),
            "truncated": float(1 - self.terminated.mean()),
            "observation": [component.as_json() for component in self.components],
            "n_steps": {"suggested": n_steps, "reason": reason},
            "scaling": scaling_advice(self.rewards, self.steps),
        }

    def outliers(self) -> list[dict[str, float]]:
        """Rewards far from the usual ones, by value: how often, and at which step of an episode."""
        middle = np.median(self.rewards)
        mad = np.median(np.abs(self.rewards - middle))
        if mad == 0:  # most rewards are equal: what lies outside of the middle 98 percent stands out
            low, high = np.quantile(self.rewards, (0.01, 0.99), method="nearest")
        else:
            low, high = middle - OUTLIER_MADS * mad, middle + OUTLIER_MADS * mad
        outside = (self.rewards < low) | (self.rewards > high)
        found = []
        for side in (self.rewards < low, self.rewards > high):
            if side.any():
                at = self.steps[side]
                values = self.rewards[side]
                found.append(
                    {
                        "min": float(values.min()),
                        "max": float(values.max()),
                        "count": int(side.sum()),
                        "share": float(side.sum() / outside.size),
                        "median_step": float(np.median(at)),
                        "last_step": float(np.mean(self._is_last()[side])),
                    }
                )
        return found

    def _is_last(self) -> np.ndarray:
        """Which steps ended their episode."""
        return np.append(self.steps[1:] <= self.steps[:-1], True)

    def gaps(self) -> dict[str, float | None]:
        """Steps between rewards that are not the usual one, within episodes."""
        values, counts = np.unique(self.rewards, return_counts=True)
        usual = values[counts.argmax()]
        events = self.steps[self.rewards != usual]
        episode = np.cumsum(self.steps == 1)[self.rewards != usual]
        gaps = np.diff(events)[np.diff(episode) == 0]
        share = float((self.rewards == usual).mean())
        found: dict[str, float | None] = {"usual": float(usual), "share": share}
        if not gaps.size:
            return {**found, "mean": None, "median": None, "max": None}
        return {**found, "mean": float(gaps.mean()), "median": float(np.median(gaps)), "max": int(gaps.max())}


def audit(envs: VectorEnv, act: Act, episodes: int, seeds: Sequence[int], on_episode: Callable[[int], None]) -> Audit:
    """Play whole episodes, the same number in each slot (so that short ones are not favoured), and keep every reward."""
    left = np.bincount(np.arange(episodes) % envs.n_envs, minlength=envs.n_envs)
    row = envs.new_row()
    ranges = ObservedRanges(envs.observation_space)
    under_way: list[list[float]] = [[] for _ in range(envs.n_envs)]
    done: list[list[list[float]]] = [[] for _ in range(envs.n_envs)]
    ends: list[tuple[float, int, bool]] = []
    envs.reset(seeds, row)
    ranges.see(row.obs, left > 0)
    for _ in itertools.count():
        ended = envs.step(act(row), row)
        for slot in np.flatnonzero(left).tolist():
            under_way[slot].append(float(row.reward[slot]))
        for episode in ended:
            slot = episode.index
            if left[slot] > 0:
                left[slot] -= 1
                ends.append((episode.ret, episode.length, episode.terminated))
                done[slot].append(under_way[slot])
                under_way[slot] = []
                ranges.see_final(episode.final_obs)
                on_episode(len(ends))
        if not left.any():
            break
        ranges.see(row.obs, left > 0)
        if max(map(len, under_way)) > MAX_EPISODE_STEPS:
            raise EnvError(f"An episode did not end within {MAX_EPISODE_STEPS:,} steps: set env.time_limit.")
    played = [episode for slot in done for episode in slot]
    return Audit(
        rewards=np.array([reward for episode in played for reward in episode]),
        steps=np.array([step for episode in played for step in range(1, len(episode) + 1)]),
        returns=np.array([ret for ret, _, _ in ends]),
        lengths=np.array([length for _, length, _ in ends]),
        terminated=np.array([terminated for _, _, terminated in ends]),
        components=ranges.components(),
    )


def _spread(values: np.ndarray) -> dict[str, Any]:
    quantiles = np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95))
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
        "quantiles": dict(zip(("5%", "25%", "50%", "75%", "95%"), quantiles.tolist(), strict=True)),
    }


def histogram(rewards: np.ndarray) -> list[dict[str, float]]:
    """Counts by value if there are few values, else by equal bins."""
    values, counts = np.unique(rewards, return_counts=True)
    if len(values) <= BINS:
        return [{"low": float(v), "high": float(v), "count": int(c)} for v, c in zip(values, counts, strict=True)]
    counts, edges = np.histogram(rewards, BINS)
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    return [{"low": float(low), "high": float(high), "count": int(count)} for low, high, count in bins]


def scaling_advice(rewards: np.ndarray, steps: np.ndarray, gamma: float = 0.99) -> dict[str, Any]:
    """How large the critic's targets are, and what to do about it."""
    returns = np.zeros(len(rewards))
    following = 0.0
    for i in range(len(rewards) - 1, -1, -1):
        last = i + 1 == len(rewards) or steps[i + 1] == 1
        following = rewards[i] + (0.0 if last else gamma * following)
        returns[i] = following
    size = float(np.abs(returns).mean())
    largest, usual = float(np.abs(rewards).max()), 0.0
    if rewards.any():
        usual = float(np.median(np.abs(rewards[rewards != 0])))
    if not rewards.any():
        advice = "No reward at all: explore longer, or shape the reward, before anything is scaled."
    elif (rewards == 0).mean() > SPARSE:
        advice = (
            "Rewards are rare: scaling changes little, a gamma near 1 and more exploration (algo.ent_coef) help more."
        )
    elif usual and largest > 50 * usual:
        advice = (
            f"The largest reward is {largest / usual:.0f} times the usual one and may dominate the updates: "
            "algo.normalize_reward=true (scales and clips), or a reward_clip wrapper."
        )
    elif size > 20 or size < 0.05:
        kind = "large" if size > 20 else "tiny"
        advice = f"Targets of the critic are {kind}: algo.normalize_reward=true scales them to about 1."
    else:
        advice = "Targets of the critic are of a good size: no scaling needed."
    return {"gamma": gamma, "target_size": size, "advice": advice}


def random_policy(envs: VectorEnv, seed: int) -> Act:
    """Uniform actions that respect masks."""
    random = np.random.default_rng(seed)
    return lambda row: random_actions(envs.action_space, envs.n_envs, random, row.mask)
