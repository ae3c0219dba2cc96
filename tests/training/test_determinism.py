"""The same seed gives the same bits, another seed others, and how envs are stepped changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from runs_alike import PER_ITERATION, Watcher, differences, end_of, run, small

from gymnast.runs.store import Run

FAMILIES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {},
    "Acrobot-v1": {},
    "MountainCar-v0": {},
    "MountainCarContinuous-v0": {},
    "Pendulum-v1": {},
    "FrozenLake-v1": {},
    "Taxi-v4": {},
    "CliffWalking-v1": {},
    "Blackjack-v1": {},
}
NORMALISED = {"policy": {"hidden": [16], "normalize_obs": True}}


def train(algorithm: str, env: dict[str, Any], root: Path, seed: int = 0, **changes: Any) -> tuple[Run, Watcher]:
    """Three iterations."""
    watcher = Watcher()
    budget = {"env_steps": 3 * PER_ITERATION, "seed": seed}
    return run(small(algorithm, env, train=budget, **changes), root, watcher).run, watcher


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
@pytest.mark.parametrize("env_id", FAMILIES)
def test_same_seed_same_bits_other_seed_others(algorithm: str, env_id: str, tmp_path: Path) -> None:
    """Weights, moments, env states, metrics and actions; a second seed shares none of the weights."""
    env = {"id": env_id, "time_limit": PER_ITERATION // 4, **FAMILIES[env_id]}
    first, actions = train(algorithm, env, tmp_path)
    second, again = train(algorithm, env, tmp_path)
    assert not differences(end_of(first), end_of(second))
    assert not differences(actions.actions, again.actions)
    other, _ = train(algorithm, env, tmp_path, seed=1)
    weights, others = end_of(first)["policy"], end_of(other)["policy"]
    for name, tensor in weights.items():
        if name.endswith("weight"):
            assert not torch.equal(tensor, others[name]), name


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_how_envs_are_stepped_changes_nothing(algorithm: str, tmp_path: Path) -> None:
    """In-process = worker pool = native CartPole: the same actions, weights and metrics, evaluations included."""
    ways = [{"vectorization": "native"}, {"vectorization": "inprocess"}, {"vectorization": "workers", "n_workers": 3}]
    ends = []
    for way in ways:
        here, watcher = train(algorithm, {"id": "CartPole-v1", "time_limit": 30, **way}, tmp_path, **NORMALISED)
        end = end_of(here)
        rows = [{key: value for key, value in row.items() if key != "env/worker_restarts"} for row in end["rows"]]
        parts = ("policy", "counters", "step")
        trainer = {key: end["state"]["session"][key] for key in ("optimizer", "generators", "window", "rollout")}
        ends.append([*(end[part] for part in parts), rows, trainer, watcher.actions])
    assert not differences(ends[0], ends[1])
    assert not differences(ends[1], ends[2])


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    """An env known only by replay, under one and four workers."""
    ends = []
    for workers in (1, 4):
        env = {"id": "Walk-v0", "vectorization": "workers", "n_workers": workers}
        ends.append(end_of(train("ppo", env, tmp_path, **NORMALISED)[0]))
    assert not differences(*ends)


def test_one_torch_thread(tmp_path: Path) -> None:
    """`train.threads: auto` is one, and a number is kept."""
    train("ppo", {"id": "CartPole-v1"}, tmp_path)
    assert torch.get_num_threads() == 1
    try:
        train("ppo", {"id": "CartPole-v1"}, tmp_path, seed=1)
        run(small("ppo", {"id": "CartPole-v1"}, train={"env_steps": PER_ITERATION, "threads": 2}), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_evaluation_does_not_disturb_training(tmp_path: Path) -> None:
    """With twice as many evaluations the weights stay the same."""
    env = {"id": "CartPole-v1"}
    rarely, _ = train("ppo", env, tmp_path, **NORMALISED, eval={"every": 10**9, "episodes": 2})
    often, _ = train("ppo", env, tmp_path, **NORMALISED, eval={"every": 1, "episodes": 5, "deterministic": False})
    first, second = end_of(rarely), end_of(often)
    assert first["counters"]["evaluations"] == 1
    assert second["counters"]["evaluations"] == 3
    assert not differences(first["policy"], second["policy"])
    assert not differences(first["state"]["session"], second["state"]["session"])


def test_neighbouring_seeds_share_no_env(tmp_path: Path) -> None:
    """No slot of seed 0 starts where a slot of seed 1 starts."""
    starts = []
    for seed in (0, 1):
        watcher = Watcher()
        resolved = small("ppo", {"id": "CartPole-v1", "n_envs": 8}, train={"env_steps": 1, "seed": seed})
        starts.append([])

        def keep(*_: Any, into: list[Any] = starts[-1], watcher: Watcher = watcher) -> None:
            assert watcher.trainer is not None
            envs: Any = watcher.trainer.envs
            into.extend(str(generator.bit_generator.state) for generator in envs._generators)

        watcher.update = keep  # type: ignore[method-assign]
        run(resolved, tmp_path, watcher)
    assert len(set(starts[0])) == len(set(starts[1])) == 8
    assert not set(starts[0]) & set(starts[1])
