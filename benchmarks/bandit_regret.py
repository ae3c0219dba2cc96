"""Regret on the bandits: reference algorithms, our trained policies, and what theory says of both.

    python benchmarks/bandit_regret.py               # everything, a few minutes; writes results/bandit_regret.json
    python benchmarks/bandit_regret.py --quick       # small sizes, writes nothing: for smoke tests

Bounds for Bernoulli arms with gaps Δ to the best mean μ*:
- Lai and Robbins 1985: any consistent algorithm has regret ≥ (Σ Δ ÷ KL(μ, μ*)) · ln T asymptotically. It says nothing
  about a given T: a player may be below it for a while.
- Auer, Cesa-Bianchi and Fischer 2002, theorem 1: UCB1 has regret ≤ 8 Σ (ln T ÷ Δ) + (1 + π²/3) Σ Δ at every T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import RESULTS, machine, parser, source, versions, write

from gymnast.envs.families.bandits import AUER_12, HORIZON, REGISTERED
from gymnast.envs.families.bandits.vector import BanditVector

Play = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]
"""Pulls [N, A] and summed rewards [N, A] so far (faded for a bandit that drifts), the step → arms [N]."""


# --- reference algorithms -------------------------------------------------------------------------------------------


def ucb1(pulls: np.ndarray, sums: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    """Largest mean + √(2 ln t ÷ n), every arm once first (Auer et al. 2002); fading counts make it discounted UCB."""
    total = np.maximum(pulls.sum(1, keepdims=True), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        index = sums / pulls + np.sqrt(2 * np.log(total) / pulls)
    return np.where(pulls > 0, index, np.inf).argmax(1)


def thompson(pulls: np.ndarray, sums: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    """The arm that is best in a draw from the posterior under a uniform prior (Thompson 1933)."""
    return rng.beta(sums + 1, pulls - sums + 1).argmax(1)


def epsilon_greedy(pulls: np.ndarray, sums: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    """The best mean so far, any arm one time in ten; regret grows linearly by construction."""
    mean = np.where(pulls > 0, sums / np.maximum(pulls, 1e-9), np.inf)
    return np.where(rng.random(len(mean)) < 0.1, rng.integers(mean.shape[1], size=len(mean)), mean.argmax(1))


def uniform(pulls: np.ndarray, sums: np.ndarray, t: int, rng: np.random.Generator) -> np.ndarray:
    """Any arm."""
    return rng.integers(pulls.shape[1], size=len(pulls))


def play(env_id: str, choose: Play, horizon: int, episodes: int, *, memory: float = 1.0, seed: int = 0) -> np.ndarray:
    """Regret [episodes] of one episode each."""
    envs = BanditVector(episodes, max_episode_steps=horizon, **REGISTERED[env_id])
    row, rng = envs.new_row(), np.random.default_rng(seed)
    envs.reset(range(seed, seed + episodes), row)
    arms = int(envs.action_space.n)  # type: ignore[attr-defined]
    pulls, sums, slots = np.zeros((episodes, arms)), np.zeros((episodes, arms)), np.arange(episodes)
    for t in range(1, horizon + 1):
        chosen = choose(pulls, sums, t, rng)
        ended = envs.step(chosen, row)
        pulls, sums = pulls * memory, sums * memory
        pulls[slots, chosen] += 1
        sums[slots, chosen] += row.reward
    return np.array([episode.infos["regret"] for episode in ended])


def linucb(horizon: int, episodes: int, seed: int = 0) -> np.ndarray:
    """Regret of LinUCB (Li et al. 2010, disjoint arms, α = 0.5) on the contextual bandit."""
    envs = BanditVector(episodes, max_episode_steps=horizon, **REGISTERED["gymnast/ContextualBandit-v0"])
    row = envs.new_row()
    envs.reset(range(seed, seed + episodes), row)
    arms, slots = int(envs.action_space.n), np.arange(episodes)  # type: ignore[attr-defined]
    inverse = np.broadcast_to(np.eye(3), (episodes, arms, 3, 3)).copy()
    right = np.zeros((episodes, arms, 3))
    for _ in range(horizon):
        x = np.concatenate([row.obs, np.ones((episodes, 1))], 1)  # with a constant: the mean is affine
        estimate = np.einsum("eaij,eaj,ei->ea", inverse, right, x)
        width = np.sqrt(np.einsum("ei,eaij,ej->ea", x, inverse, x))
        chosen = (estimate + 0.5 * width).argmax(1)
        ended = envs.step(chosen, row)
        spread = np.einsum("eij,ej->ei", inverse[slots, chosen], x)
        inverse[slots, chosen] -= (
            spread[:, :, None] * spread[:, None] / (1 + np.einsum("ei,ei->e", x, spread))[:, None, None]
        )
        right[slots, chosen] += x * row.reward[:, None]
    return np.array([episode.infos["regret"] for episode in ended])


# --- bounds ---------------------------------------------------------------------------------------------------------


def lai_robbins(means: list[float], horizon: int) -> float:
    """Σ Δ ÷ KL · ln T."""
    best = max(means)
    return sum((best - mean) / kl(mean, best) for mean in means if mean < best) * math.log(horizon)


def ucb1_bound(means: list[float], horizon: int) -> float:
    """8 Σ ln T ÷ Δ + (1 + π²/3) Σ Δ."""
    gaps = [max(means) - mean for mean in means if mean < max(means)]
    return sum(8 * math.log(horizon) / gap for gap in gaps) + (1 + math.pi**2 / 3) * sum(gaps)


def kl(p: float, q: float) -> float:
    """Divergence of Bernoulli p from Bernoulli q."""
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


# --- our policies ---------------------------------------------------------------------------------------------------


def trained(reference: str, seed: int, *overrides: str) -> dict[str, Any]:
    """Train a preset to the end of its budget: regret while learning, and of the policy it ends with."""
    import tempfile
    from pathlib import Path

    from gymnast.config.load import resolve
    from gymnast.metrics.sinks.jsonl import MetricRows
    from gymnast.training.train import train

    settings = {"train.stop_when_solved": False, "train.seed": seed, "eval.episodes": 2000, "eval.every": 10**8}
    # All slots end together: a window of one episode per slot holds exactly those that are new.
    settings["log.window"] = resolve(reference).config.env.n_envs
    with tempfile.TemporaryDirectory() as folder:
        result = train(resolve(reference, list(overrides), settings=settings), Path(folder))
        assert result is not None
        rows = list(MetricRows(next(Path(folder).glob("*/metrics.jsonl"))))
    learning, episodes = 0.0, 0.0
    for row in rows:
        learning += (row["rollout/episodes"] - episodes) * (row["rollout/regret"] or 0.0)
        episodes = row["rollout/episodes"]
    return {
        "pulls": episodes * HORIZON,
        "learning_regret": learning,
        "final_regret": rows[-1]["eval/regret"],
        "final_return": rows[-1]["eval/return_mean"],
    }


def summary(values: np.ndarray) -> dict[str, float]:
    """Mean and its standard error."""
    return {"mean": round(float(values.mean()), 3), "se": round(float(values.std() / math.sqrt(len(values))), 3)}


def policies(references: dict[str, tuple[str, ...]], seeds: int) -> dict[str, Any]:
    """Each preset on several seeds."""
    found = {}
    for reference, overrides in references.items():
        runs = [trained(reference, seed, *overrides) for seed in range(seeds)]
        found[reference] = {
            "pulls": runs[0]["pulls"],
            "learning_regret": summary(np.array([run["learning_regret"] for run in runs])),
            "final_regret": summary(np.array([run["final_regret"] for run in runs])),
            "final_return": summary(np.array([run["final_return"] for run in runs])),
            "runs": runs,
        }
        print(reference, found[reference]["learning_regret"], found[reference]["final_regret"], flush=True)
    return found


REFERENCES: dict[str, Play] = {
    "UCB1": ucb1,
    "Thompson sampling": thompson,
    "ε-greedy (0.1)": epsilon_greedy,
    "uniform": uniform,
}


def main() -> None:
    """Measure and write."""
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true", help="small sizes; nothing is written")
    quick = options.parse_args().quick
    episodes, seeds = (50, 1) if quick else (2000, 5)
    record: dict[str, Any] = {"name": "bandit_regret", "machine": machine(), "versions": versions(), "source": source()}

    small = ("train.env_steps=4096",) if quick else ()
    fixed: dict[str, Any] = {}
    for horizon in (HORIZON,) if quick else (HORIZON, 2000, 20_000):
        count = episodes if horizon < 20_000 else 200
        fixed[str(horizon)] = {
            "Lai–Robbins (asymptotic lower bound)": round(lai_robbins(AUER_12, horizon), 2),
            "UCB1 (upper bound)": round(ucb1_bound(AUER_12, horizon), 2),
            **{name: summary(play("gymnast/Bandit-v0", choose, horizon, count)) for name, choose in REFERENCES.items()},
        }
        print("fixed", horizon, fixed[str(horizon)], flush=True)
    learners = {f"gymnast/Bandit-v0:{name}": ("train.env_steps=20000",) for name in ("ppo", "a2c", "reinforce")}
    record["fixed"] = {"regret_of_one_episode_by_pulls": fixed, "trained": policies(learners, seeds)}

    for key, env_id, memory in (
        ("random", "gymnast/RandomBandit-v0", 1.0),
        ("drifting", "gymnast/DriftingBandit-v0", REGISTERED["gymnast/DriftingBandit-v0"]["memory"]),
    ):
        played = {name: summary(play(env_id, choose, HORIZON, episodes)) for name, choose in REFERENCES.items()}
        if memory < 1:
            played |= {
                f"{name}, fading": summary(play(env_id, choose, HORIZON, episodes, memory=memory))
                for name, choose in REFERENCES.items()
                if choose is not uniform
            }
        print(key, played, flush=True)
        record[key] = {"references": played, "trained": policies({f"{env_id}:ppo": small}, seeds)}

    record["contextual"] = {
        "references": {"LinUCB": summary(linucb(HORIZON, episodes))},
        "trained": policies(
            {f"gymnast/ContextualBandit-v0:{name}": small for name in ("ppo", "a2c", "reinforce")}, seeds
        ),
    }
    if not quick:
        write(RESULTS / "bandit_regret.json", record)


if __name__ == "__main__":
    main()
