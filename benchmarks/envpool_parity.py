"""Whether EnvPool's tasks are the same envs as Gymnasium's: writes the table that `env.vectorization: auto` reads.

    python benchmarks/envpool_parity.py                    # all rows, a few minutes
    python benchmarks/envpool_parity.py --only Taxi-v4     # these again, the others stay
    python benchmarks/envpool_parity.py --markdown         # the table for docs/vectorization.md

Equal seeds give other episodes in the two packages, so traces cannot be compared. Instead each row has to pass
- `spaces`: same shapes, same number of actions, same bounds of actions;
- `time limit`: at a limit of 7 steps an episode that has not ended is cut off there, and none is longer;
- `one step`: Gymnasium's env is put into the state EnvPool was in, given the same action, and must come to the same state,
  reward and end (toy text: to an outcome of its transition table). Not comparable for Box2D, whose solver keeps hidden state,
  and Blackjack, whose hands are hidden: there the distributions decide;
- `returns`, `lengths`: two-sample Kolmogorov–Smirnov on 500 episodes each under uniform random actions;
- `first observations`, `later observations`: the same test per component, after resets and after 20 random steps.

Fixed before anything was run: a test passes at p > 0.001; where a test has k components, each passes at p > 0.001 / k. One-step
comparisons pass when 99 % of them agree to 1e-3 (MuJoCo's solver starts from the last acceleration, which is not observed).
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from scipy import stats

from gymnast.envs.actions import converter, random_actions
from gymnast.envs.envpool import EnvPoolVector
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.parity import TABLE, ParityRow
from gymnast.envs.vector import StepRow, VectorEnv
from gymnast.evaluation.evaluate import quotas
from gymnast.seeding import env_seeds

FILE = Path(__file__).resolve().parents[1] / "src" / "gymnast" / "presets" / TABLE
LEVEL = 0.001
EPISODES, SLOTS = 500, 50
OBSERVED, LATER = 2000, 20
TRANSITIONS, TOLERANCE, AGREEING = 2000, 1e-3, 0.99

LAGGING = "Ant"
"""Its reward reads a body position that lags one substep behind the state, so no state brings it back: Gymnasium's own env, put
into its own states, repeats all observations to 1e-13 and a third of the rewards not."""

SLIPPERY = {"is_slippery": True}
ROWS = [
    ParityRow("CartPole-v1", {}, "CartPole-v1", defaults={"sutton_barto_reward": False}),
    ParityRow("MountainCar-v0", {}, "MountainCar-v0", defaults={"goal_velocity": 0}),
    ParityRow("MountainCarContinuous-v0", {}, "MountainCarContinuous-v0", defaults={"goal_velocity": 0}),
    ParityRow("Acrobot-v1", {}, "Acrobot-v1"),
    ParityRow("Pendulum-v1", {}, "Pendulum-v1", defaults={"g": 10.0}),
    ParityRow("FrozenLake-v1", {"map_name": "4x4"}, "FrozenLake-v1", defaults=SLIPPERY),
    ParityRow("FrozenLake-v1", {"map_name": "8x8"}, "FrozenLake8x8-v1", defaults=SLIPPERY),
    ParityRow("FrozenLake8x8-v1", {"map_name": "8x8"}, "FrozenLake8x8-v1", defaults=SLIPPERY),
    ParityRow("Taxi-v4", {}, "Taxi-v3", defaults={"is_rainy": False, "fickle_passenger": False}, action_masks=True),
    ParityRow("CliffWalking-v1", {}, "CliffWalking-v1", defaults={"is_slippery": False}),
    ParityRow("CliffWalking-v1", SLIPPERY, "CliffWalkingSlippery-v1"),
    ParityRow("CliffWalkingSlippery-v1", SLIPPERY, "CliffWalkingSlippery-v1"),
    ParityRow("Blackjack-v1", {"natural": False, "sab": True}, "Blackjack-v1"),
    ParityRow("LunarLander-v3", {}, "LunarLander-v3", defaults={"continuous": False, "enable_wind": False}),
    ParityRow("LunarLander-v3", {"continuous": True}, "LunarLanderContinuous-v3", defaults={"enable_wind": False}),
    ParityRow(
        "LunarLanderContinuous-v3", {"continuous": True}, "LunarLanderContinuous-v3", defaults={"enable_wind": False}
    ),
    ParityRow("BipedalWalker-v3", {}, "BipedalWalker-v3", defaults={"hardcore": False}),
    ParityRow("HalfCheetah-v5", {}, "HalfCheetah-v5"),
    ParityRow("Hopper-v5", {}, "Hopper-v5"),
    ParityRow("Walker2d-v5", {}, "Walker2d-v5"),
    ParityRow("Ant-v5", {}, "Ant-v5"),
]
LIMITS = {"CliffWalking-v1": 300, "CliffWalkingSlippery-v1": 300}
"""Random walks that would take thousands of steps are cut off, in both packages alike."""


# --- both packages behind the contract ---------------------------------------------------------------------------------


def gymnasium_env(row: ParityRow, limit: int | None = None) -> gym.Env:
    """The env as Gymnasium makes it, the registered limit included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        registered = gym.spec(row.id).kwargs
        own = {key: value for key, value in row.kwargs.items() if registered.get(key) != value}
        return gym.make(row.id, max_episode_steps=limit or LIMITS.get(row.id), disable_env_checker=True, **own)


def of_gymnasium(row: ParityRow, n_envs: int, limit: int | None = None) -> VectorEnv:
    """Gymnasium's envs."""
    return InProcessVector(lambda: gymnasium_env(row, limit), n_envs, action_mask=False)


def of_envpool(row: ParityRow, n_envs: int, limit: int | None = None) -> VectorEnv:
    """EnvPool's."""
    env = gymnasium_env(row)
    return EnvPoolVector(
        row.task,
        n_envs,
        observation_space=env.observation_space,
        action_space=env.action_space,
        n_threads=2,
        max_episode_steps=limit or LIMITS.get(row.id) or gym.spec(row.id).max_episode_steps,
        task_kwargs=row.task_kwargs,
    )


def start(envs: VectorEnv, seed: int) -> tuple[StepRow, np.random.Generator]:
    """A row in which all digits fit, after a reset."""
    row = envs.new_row()
    row.obs = np.zeros(row.obs.shape, np.float64 if row.obs.dtype.kind == "f" else row.obs.dtype)  # type: ignore[union-attr]
    envs.reset(env_seeds(seed, "eval_envs", envs.n_envs), row)
    return row, np.random.default_rng(seed)


# --- tests ---------------------------------------------------------------------------------------------------------


def test_spaces(row: ParityRow) -> dict[str, Any]:
    """Shapes, kinds and the bounds of actions; bounds of observations are Gymnasium's in any case."""
    import envpool

    spec, env = envpool.make_spec(row.task, **row.task_kwargs), gymnasium_env(row)
    theirs, ours = spec.gymnasium_action_space, env.action_space
    same = (
        type(theirs) is type(ours) and theirs.shape == ours.shape and getattr(theirs, "n", 0) == getattr(ours, "n", 0)
    )
    if isinstance(ours, gym.spaces.Box):
        same = same and bool((theirs.low == ours.low).all() and (theirs.high == ours.high).all())
    notes = []
    own, other = env.observation_space, spec.gymnasium_observation_space
    if isinstance(own, gym.spaces.Box) and not (np.allclose(own.low, other.low) and np.allclose(own.high, other.high)):
        notes.append("EnvPool states other bounds of observations; Gymnasium's are used")
    return {"pass": bool(same), "notes": notes}


def test_time_limit(row: ParityRow, limit: int = 7) -> dict[str, Any]:
    """No episode is longer than the limit, and one that reaches it without ending is cut off, not ended."""
    envs = of_envpool(row, SLOTS, limit)
    target, random = start(envs, 1)
    cut = longest = 0
    right = True
    for _ in range(10 * limit):
        for episode in envs.step(random_actions(envs.action_space, SLOTS, random), target):
            longest = max(longest, episode.length)
            at_limit = bool(target.truncated[episode.index])
            cut += at_limit and not episode.terminated
            right = right and at_limit == (episode.length == limit) and (episode.terminated or at_limit)
    envs.close()
    return {"pass": bool(right and longest <= limit), "cut": cut}


def episodes(envs: VectorEnv, seed: int) -> tuple[list[float], list[int]]:
    """Returns and lengths under random actions; every slot plays the same number, so short ones are not favoured."""
    target, random = start(envs, seed)
    left = quotas(EPISODES, envs.n_envs)
    returns, lengths = [], []
    while left.any():
        for episode in envs.step(random_actions(envs.action_space, envs.n_envs, random), target):
            if left[episode.index]:
                left[episode.index] -= 1
                returns.append(episode.ret)
                lengths.append(episode.length)
    envs.close()
    return returns, lengths


def observations(envs: VectorEnv, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """First observations of OBSERVED episodes, and observations LATER steps on in the slots still in their first."""
    target, random = start(envs, seed)
    first, later = [target.obs.copy()], np.zeros(0)  # type: ignore[union-attr]
    whole = np.ones(envs.n_envs, np.bool_)
    for step in range(100_000):
        ended = [e.index for e in envs.step(random_actions(envs.action_space, envs.n_envs, random), target)]
        whole[ended] = False
        if ended:
            first.append(target.obs[ended].copy())  # type: ignore[index,call-overload]
        if step + 1 == LATER:
            later = target.obs[whole].copy()  # type: ignore[index,call-overload]
        if step + 1 >= LATER and (sum(map(len, first)) >= OBSERVED or step > 200):
            break
    envs.close()
    return np.concatenate(first)[:OBSERVED], later


def same_distribution(ours: Any, theirs: Any) -> float:
    """p of the two-sample Kolmogorov–Smirnov test; 1 when both are one and the same number."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    # Rounding differs between float32 and float64: what differs less is one value.
    a, b = np.round(a, 5), np.round(b, 5)
    return 1.0 if np.ptp(np.concatenate([a, b])) == 0 else float(stats.ks_2samp(a, b, method="asymp").pvalue)


def by_component(ours: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """The smallest p over components, judged at the level divided by their number."""
    if min(len(ours), len(theirs)) < 20:
        return {"pass": True, "comparable": False, "why": "episodes are shorter"}
    a, b = ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1)
    values = [same_distribution(a[:, i], b[:, i]) for i in range(a.shape[1])]
    worst = int(np.argmin(values))
    enough = min(values) > LEVEL / len(values)
    return {"pass": enough, "p": float(f"{min(values):.3g}"), "components": len(values), "worst": worst, "n": len(ours)}


def judged(p: float) -> dict[str, Any]:
    """One test at the level."""
    return {"pass": p > LEVEL, "p": float(f"{p:.3g}")}


# --- one step from the same state --------------------------------------------------------------------------------------


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


def test_one_step(row: ParityRow) -> dict[str, Any]:
    """EnvPool's transitions, repeated by Gymnasium's env from the same state."""
    env = gymnasium_env(row).unwrapped
    put = next((put for name, put in PUT.items() if row.id.startswith(name)), None)
    tabular = hasattr(env, "P")
    if put is None and not tabular:
        return {"pass": True, "comparable": False, "why": "the state cannot be read from observations"}
    envs = of_envpool(row, SLOTS)
    target, random = start(envs, 2)
    env.reset(seed=0)
    own_actions = converter(envs.action_space)
    agree = total = 0
    largest = 0.0
    while total < TRANSITIONS:
        before = target.obs.copy()  # type: ignore[union-attr]
        actions = random_actions(envs.action_space, SLOTS, random)
        final = {episode.index: episode.final_obs for episode in envs.step(actions, target)}
        given = own_actions(actions)
        for i in range(SLOTS):
            after, end = final.get(i, target.obs[i]), bool(target.terminated[i])  # type: ignore[index]
            if tabular:
                outcomes = env.P[int(before[i])][int(actions[i])]  # type: ignore[attr-defined]
                found = (int(after), float(target.reward[i]), end)
                agree += found in {(int(s), float(r), bool(d)) for p, s, r, d in outcomes if p > 0}
            elif row.id.startswith(("Hopper", "Walker2d")) and np.abs(before[i]).max() >= 10:
                continue  # speeds are cut off at 10 in the observation: the state is not known
            else:
                put(env, before[i])  # type: ignore[misc]
                obs, reward, terminated, _, _ = env.step(given[i])
                paid = 0.0 if row.id.startswith(LAGGING) else float(reward) - float(target.reward[i])
                parts = np.append(np.asarray(obs, np.float64) - after, paid)
                scale = 1 + np.abs(np.append(after, target.reward[i]))
                error = float(np.abs(parts / scale).max())
                largest = max(largest, error)
                agree += error <= TOLERANCE and terminated == end
            total += 1
    envs.close()
    share = agree / total
    result: dict[str, Any] = {"pass": share >= (1.0 if tabular else AGREEING), "agree": round(share, 4), "n": total}
    return result if tabular else {**result, "largest_error": float(f"{largest:.2g}")}


# --- the table ---------------------------------------------------------------------------------------------------------


def tested(row: ParityRow) -> ParityRow:
    """The row with all results and the verdict."""
    ours, theirs = episodes(of_gymnasium(row, SLOTS), 3), episodes(of_envpool(row, SLOTS), 4)
    first = observations(of_gymnasium(row, 200), 5)
    second = observations(of_envpool(row, 200), 6)
    results = {
        "spaces": test_spaces(row),
        "time limit": test_time_limit(row),
        "one step": test_one_step(row),
        "returns": {**judged(same_distribution(ours[0], theirs[0])), "means": _means(ours[0], theirs[0])},
        "lengths": {**judged(same_distribution(ours[1], theirs[1])), "means": _means(ours[1], theirs[1])},
        "first observations": by_component(first[0], second[0]),
        "later observations": by_component(first[1], second[1]),
    }
    failed = [f"{name}: {_words(result)}" for name, result in results.items() if not result["pass"]]
    return dataclasses.replace(row, verdict="fail" if failed else "pass", reasons=failed, results=results)


def _means(ours: list[float] | list[int], theirs: list[float] | list[int]) -> list[float]:
    """Gymnasium's mean and EnvPool's."""
    return [float(f"{np.mean(values):.4g}") for values in (ours, theirs)]


def _words(result: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in result.items() if key != "pass")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table for the docs."""
    lines = [
        "| Gymnasium | EnvPool | one step | returns (p) | lengths (p) | observations (least p, first / later) | verdict |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for row in rows:
        results = row["results"]
        registered = gym.spec(row["id"]).kwargs
        given = ", ".join(f"{key}={value}" for key, value in row["kwargs"].items() if registered.get(key) != value)
        step = results["one step"]
        agree = f"{step['agree']:.1%} agree" if "agree" in step else "not comparable"
        seen = " / ".join(f"{results[f'{when} observations'].get('p', '–')}" for when in ("first", "later"))
        verdict = row["verdict"] if not row["reasons"] else f"{row['verdict']}: {'; '.join(row['reasons'])}"
        name = f"{row['id']} {given}".strip() + (" (no action masks)" if row["action_masks"] else "")
        lines.append(
            f"| {name} | {row['task']} | {agree} | {results['returns']['p']} | {results['lengths']['p']} | {seen} | {verdict} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Test and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="ids to test again")
    parser.add_argument("--markdown", action="store_true", help="print the table that is there")
    arguments = parser.parse_args()
    old = json.loads(FILE.read_text()) if FILE.exists() else {"rows": []}
    if arguments.markdown:
        print(markdown(old["rows"]))
        return
    gym.logger.min_level = gym.logger.ERROR
    kept = {(row["id"], json.dumps(row["kwargs"])): row for row in old["rows"]}
    rows = []
    for row in ROWS:
        key = (row.id, json.dumps(row.kwargs))
        if arguments.only and row.id not in arguments.only and key in kept:
            rows.append(kept[key])
            continue
        result = dataclasses.asdict(tested(row))
        print(f"{row.id} {row.kwargs}: {result['verdict']} {result['reasons']}", file=sys.stderr, flush=True)
        rows.append(result)
    names = ("envpool", "gymnasium", "numpy", "mujoco")
    content = {
        "about": "Written by benchmarks/envpool_parity.py, which says what each test is. Do not edit.",
        "versions": {name: importlib.metadata.version(name) for name in names},
        "level": LEVEL,
        "episodes": EPISODES,
        "rows": rows,
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
