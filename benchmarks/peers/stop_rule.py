"""The stop rule and the final evaluation every contestant gets, as gymnast's own run has them.

When the mean return of the last 100 training episodes first reaches `eval_at`, and from then on after every further
`eval_every` env steps, the deterministic policy plays 100 whole episodes on envs of its own. Training stops when
their mean reaches `solved_at`. One episode per env slot: unbiased (no slot contributes a second, short episode) and the
fastest evaluation a peer can be given: Gymnasium's native vector CartPole; for other envs the slots that still play are
stepped one by one and judged in one batch. Failed evaluations count in the time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def process_seconds() -> float:
    """Seconds since this process was started, interpreter start-up included (10 ms resolution)."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def evaluate(env: str, act: Callable[[np.ndarray], np.ndarray], episodes: int, seed: int) -> tuple[float, float]:
    """Mean and standard deviation of the return over `episodes` whole episodes, one per env slot."""
    returns = (_vector if env == "CartPole-v1" else _one_by_one)(env, act, episodes, seed)
    return float(returns.mean()), float(returns.std())


def _one_by_one(env: str, act: Callable[[np.ndarray], np.ndarray], episodes: int, seed: int) -> np.ndarray:
    import gymnasium

    envs = [gymnasium.make(env) for _ in range(episodes)]
    observations = {i: one.reset(seed=seed * episodes + i)[0] for i, one in enumerate(envs)}
    returns = np.zeros(episodes)
    while observations:
        actions = act(np.stack(list(observations.values())))
        for i, action in zip(list(observations), actions, strict=True):
            observations[i], reward, terminated, truncated, _ = envs[i].step(action)
            returns[i] += reward
            if terminated or truncated:
                del observations[i]
    return returns


def _vector(env: str, act: Callable[[np.ndarray], np.ndarray], episodes: int, seed: int) -> np.ndarray:
    import gymnasium

    envs = gymnasium.make_vec(env, num_envs=episodes, vectorization_mode="vector_entry_point")
    observation, _ = envs.reset(seed=seed)
    returns, playing = np.zeros(episodes), np.ones(episodes, dtype=bool)
    while playing.any():
        observation, reward, terminated, truncated, _ = envs.step(act(observation))
        returns += reward * playing
        playing &= ~(terminated | truncated)
    envs.close()
    return returns


class StopRule:
    """Decides at every iteration boundary whether to evaluate, and whether training is over."""

    def __init__(self, options: argparse.Namespace, env: str = "CartPole-v1") -> None:
        self.options, self.env = options, env
        self.evaluations: list[dict[str, float]] = []
        self.next_at: float | None = None

    def met(self, mean_return: float | None, env_steps: int, act: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Evaluate if it is time to; true when the evaluation reached the bar."""
        if self.next_at is None:
            due = mean_return is not None and mean_return >= self.options.eval_at
        else:
            due = env_steps >= self.next_at
        if not due:
            return False
        self.next_at = env_steps + self.options.eval_every
        return self.judge(env_steps, act)

    def judge(self, env_steps: int, act: Callable[[np.ndarray], np.ndarray]) -> bool:
        """One evaluation, recorded."""
        begin = time.perf_counter()
        seed = 1_000_000 * (self.options.seed + 1) + len(self.evaluations)
        mean, std = evaluate(self.env, act, self.options.episodes, seed)
        took = time.perf_counter() - begin
        self.evaluations.append({"env_steps": env_steps, "mean": mean, "std": std, "seconds": round(took, 4)})
        return mean >= self.options.solved_at

    def report(self, env_steps: int, **more: Any) -> None:
        """Print the outcome as one JSON line."""
        last = self.evaluations[-1]
        outcome = {
            "solved": last["mean"] >= self.options.solved_at,
            "seconds": round(process_seconds(), 3),
            "env_steps": env_steps,
            "mean": last["mean"],
            "std": last["std"],
            "episodes": self.options.episodes,
            "evaluations": self.evaluations,
        }
        print(json.dumps(outcome | more), flush=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options every peer script shares."""
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eval-at", type=float, default=427.5, help="training return at which evaluation begins")
    parser.add_argument("--eval-every", type=int, default=5000, help="env steps from one evaluation to the next")
    parser.add_argument("--solved-at", type=float, default=475.0)
    parser.add_argument("--episodes", type=int, default=100)
