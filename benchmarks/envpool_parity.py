"""Whether EnvPool's tasks are the same envs as Gymnasium's: writes the table that `env.vectorization: auto` reads.

    python benchmarks/envpool_parity.py                    # all rows, ten minutes on one core
    python benchmarks/envpool_parity.py --only Taxi-v4     # these again, the others stay
    python benchmarks/envpool_parity.py --markdown         # the table for docs/vectorization.md

Equal seeds give other episodes in the two packages, so traces cannot be compared. Instead each row has to pass
- `spaces`: same shapes, same number of actions, same bounds of actions;
- `time limit`: at a limit of 7 steps an episode that has not ended is cut off there, and none is longer;
- `episodes`: returns, lengths, and how episodes ended, under random actions and under a rule that gets somewhere;
and, where the env is tabular (toy text), against its table itself:
- `first states`: no impossible one, every possible one, each as often as `initial_state_distrib` says;
- `transitions`: of every state and action that can be reached no impossible outcome (next state, reward, end), and each as often
  as `P` says;
or, where it is not, against Gymnasium's env:
- `first states`, `later states`: every component of the observation, the reward and the return after resets and after 1, 5, 20
  and 50 steps under both policies: distributions, ranges, dependence between components, and how many episodes have ended;
- `one step`: Gymnasium's env is put into the state EnvPool was in, given the same action, and must come to the same state,
  reward and end in 99 % of cases, to 1e-3. Not possible for Box2D, whose solver keeps hidden state.

How p values are made and what level they are held against is in `parity_statistics.py`. It was fixed before anything was run.
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
from parity_one_step import one_step, putter
from parity_sampling import (
    Policy,
    episodes,
    first_states,
    land,
    land_continuously,
    moments,
    scripted,
    start,
    transitions,
    uniform,
)
from parity_statistics import LEVEL, Check, frequencies, many_frequencies, numbers, passed, proportions, vectors
from parity_tables import Table, table_of

from gymnast.envs.actions import random_actions
from gymnast.envs.envpool import EnvPoolVector
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.parity import TABLE, ParityRow
from gymnast.envs.vector import VectorEnv

FILE = Path(__file__).resolve().parents[1] / "src" / "gymnast" / "presets" / TABLE
SLOTS, ROUNDS = 100, 20
MARKS = (0, 1, 5, 20, 50)
LEAST_EPISODES, MOST_EPISODES, EPISODE_STEPS = 100, 500, 100_000
TABLE_STEPS = 300_000
TIMES_PER_START = 30
"""How often the rarest first state is expected to be seen: one that cannot be reached is missed once in 10^13."""
UNHURRIED = 1000
"""A time limit under which distant states are reached; transitions do not depend on it."""
COVERED = 0.99
"""Share of the states and actions that can be reached which have to be tried."""

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


STILL: Policy = scripted(None)
SCRIPTS: dict[str, Policy] = {
    "CartPole": scripted(lambda obs: obs @ [0.1, 0.3, 1.0, 0.5] > 0),
    "MountainCar-": scripted(lambda obs: np.where(obs[:, 1] > 0, 2, 0)),
    "MountainCarContinuous": scripted(lambda obs: np.sign(obs[:, 1:2])),
    "Acrobot": scripted(lambda obs: np.where(obs[:, 5] > 0, 2, 0)),
    "Pendulum": scripted(lambda obs: 2 * np.sign(obs[:, 2:3])),
    "LunarLander-v3": scripted(land),
    "LunarLanderContinuous": scripted(land_continuously),
}
"""Rules that get somewhere random actions do not; other envs are left alone but for a few random actions."""


Make = Callable[[int, int | None], VectorEnv]
"""Envs by their number and time limit."""

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


def script_of(row: ParityRow) -> Policy:
    """The rule that an env is played with besides random actions."""
    found = [policy for name, policy in SCRIPTS.items() if row.task.startswith(name)]
    return found[0] if found else STILL


# --- tests ---------------------------------------------------------------------------------------------------------------


def check_spaces(row: ParityRow) -> dict[str, Any]:
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


def check_time_limit(row: ParityRow, limit: int = 7) -> dict[str, Any]:
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


def check_starts(table: Table, make: Make, times: int = TIMES_PER_START) -> list[Check]:
    """Counts of first states against the env's own table."""
    count = int(times / min(table.starts.values()))
    seen = first_states(make(SLOTS, 5), max(count, 1000), 5, marked=table.tells_first_step)
    return [frequencies(seen, table.starts)]


def check_transitions(table: Table, make: Make, steps: int = TABLE_STEPS) -> list[Check]:
    """Counts of transitions against the env's own table."""
    seen = transitions(make(SLOTS, UNHURRIED), steps, 6, marked=table.tells_first_step)
    covered = len(seen.keys() & table.steps.keys()) / len(table.steps)
    coverage = Check(f"{covered:.1%} of {len(table.steps):,} states and actions tried", float(covered >= COVERED))
    return [*many_frequencies(seen, table.steps), coverage]


def check_moments(ours: Make, theirs: Make, script: Policy, rounds: int = ROUNDS) -> dict[str, list[Check]]:
    """Many episodes at the same moments, in both packages."""
    checks: dict[str, list[Check]] = {"first states": [], "later states": []}
    for turn, (name, policy) in enumerate((("random", uniform), ("scripted", script))):
        first = moments(ours(SLOTS, None), policy, MARKS, rounds, 10 + turn)
        second = moments(theirs(SLOTS, None), policy, MARKS, rounds, 20 + turn)
        for mark in MARKS:
            a, b = first[mark], second[mark]
            what = f"{mark} {name} step{'s' if mark != 1 else ''}" if mark else "reset"
            names = [f"observation {i}" for i in range(a.seen.shape[1] - 2)]
            if mark:
                checks["later states"].append(Check(f"{what}: episodes that go on", proportions(a.alive, b.alive)))
            if min(len(a.seen), len(b.seen)) >= 20:
                checks["later states" if mark else "first states"] += vectors(
                    what, a.seen, b.seen, [*names, "reward", "return"]
                )
    return checks


def check_episodes(ours: Make, theirs: Make, script: Policy, limit: int) -> list[Check]:
    """Whole episodes in both packages."""
    count = min(max(EPISODE_STEPS // limit, LEAST_EPISODES), MOST_EPISODES)
    checks = []
    for turn, (name, policy) in enumerate((("random", uniform), ("scripted", script))):
        a, b = episodes(ours(50, None), policy, count, 30 + turn), episodes(theirs(50, None), policy, count, 40 + turn)
        checks += numbers(f"{name} returns", a.returns, b.returns) + numbers(f"{name} lengths", a.lengths, b.lengths)
        ends = (np.bincount(sample.ends, minlength=4) for sample in (a, b))
        checks.append(Check(f"{name} ends: terminated, cut off, both", proportions(*ends)))
    return checks


# --- the table -----------------------------------------------------------------------------------------------------------


def tested(row: ParityRow) -> ParityRow:
    """The row with all results and the verdict."""

    def ours(n_envs: int, limit: int | None) -> VectorEnv:
        return of_gymnasium(row, n_envs, limit)

    def theirs(n_envs: int, limit: int | None) -> VectorEnv:
        return of_envpool(row, n_envs, limit)

    env, script = gymnasium_env(row), script_of(row)
    table = table_of(env)
    assert env.spec is not None
    if table is None:
        compared = check_moments(ours, theirs, script)
    else:
        compared = {"first states": check_starts(table, theirs), "transitions": check_transitions(table, theirs)}
    compared["episodes"] = check_episodes(ours, theirs, script, env.spec.max_episode_steps or 100)
    total = sum(map(len, compared.values()))
    results = {"spaces": check_spaces(row), "time limit": check_time_limit(row)}
    results |= {name: summary(checks, total) for name, checks in compared.items()}
    if putter(row.id) is not None:
        results["one step"] = one_step(env, theirs(50, None), (uniform, script), 2)
    failed = [f"{name}: {_words(result)}" for name, result in results.items() if not result["pass"]]
    return dataclasses.replace(row, verdict="fail" if failed else "pass", reasons=failed, results=results)


def summary(checks: list[Check], total: int) -> dict[str, Any]:
    """The least likely of these checks, in a row that makes `total`."""
    worst = min(checks, key=lambda check: check.p)
    return {"pass": passed(checks, total), "p": float(f"{worst.p:.3g}"), "checks": len(checks), "worst": worst.what}


def _words(result: dict[str, Any]) -> str:
    if "worst" in result and result["p"] == 0:
        return str(result["worst"])
    if "worst" in result:
        return f"{result['worst']} (p {result['p']:g}, the least of {result['checks']:,})"
    return ", ".join(f"{key} {value}" for key, value in result.items() if key != "pass")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table for the docs."""
    lines = ["| Gymnasium | EnvPool | first states | later states, transitions | one step | episodes | verdict |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in rows:
        results = row["results"]
        registered = gym.spec(row["id"]).kwargs
        given = ", ".join(f"{key}={value}" for key, value in row["kwargs"].items() if registered.get(key) != value)
        name = f"{row['id']} {given}".strip() + (" (no action masks)" if row["action_masks"] else "")
        later = results["transitions" if "transitions" in results else "later states"]
        cells = [_cell(results["first states"]), _cell(later), _agreement(results), _cell(results["episodes"])]
        verdict = row["verdict"] if not row["reasons"] else f"{row['verdict']}: {'; '.join(row['reasons'])}"
        lines.append(f"| {name} | {row['task']} | {' | '.join(cells)} | {verdict} |")
    return "\n".join(lines)


def _cell(result: dict[str, Any]) -> str:
    return f"{result['p']:.2g} of {result['checks']:,}"


def _agreement(results: dict[str, Any]) -> str:
    if "one step" in results:
        return f"{results['one step']['observations']:.1%}"
    return "exact" if "transitions" in results else "–"


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
        "rows": rows,
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
