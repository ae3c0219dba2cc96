"""Runs of policies that remember: exact resume, ratios of one, and sentences for what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from runs_alike import N_ENVS, N_STEPS, Watcher, assert_same_end, differences, resume, run, small

from gymnast.config.load import resolve
from gymnast.errors import ConfigError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.timing import StageTimer
from gymnast.training.build import build

HIDDEN = {"id": "CartPole-v1", "wrappers": [{"id": "select", "components": [0, 2]}]}
MASKED = {"id": "MaskedIdentity-v0", "module": "small_envs"}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "ppo, burn-in": ("ppo", HIDDEN, {"memory": "lstm", "sequence_length": 8, "burn_in": 4, "normalize_obs": True}),
    "ppo, masks": ("ppo", MASKED, {"memory": "gru", "sequence_length": 4}),
    "a2c, deep": ("a2c", HIDDEN, {"memory": "gru", "memory_layers": 2, "shared_memory": True}),
    "reinforce": ("reinforce", {**HIDDEN, "time_limit": 20}, {"memory": "lstm"}),
}


def config(case: str, **changes: Any) -> Any:
    algorithm, env, policy = CASES[case]
    return small(algorithm, env, policy={"hidden": [8], "memory_size": 8, **policy}, **changes)


@pytest.mark.parametrize("case", CASES)
def test_stop_and_resume_equals_the_whole_run(case: str, tmp_path: Path) -> None:
    """Weights, moments, statistics, generators, env states, what is remembered, rows and all actions."""
    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole, stopped = run(config(case), tmp_path, straight), run(config(case), tmp_path, before)
    assert stopped.interrupted
    finished = resume(config(case), stopped.run, after)
    assert not after.warnings
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)


@pytest.mark.parametrize("case", CASES)
def test_the_first_ratio_is_one(case: str, tmp_path: Path) -> None:
    """Whatever the order of minibatches, also where states are computed anew and where episodes differ in length."""
    finished = run(config(case, algo={"learning_rate": 1e-12}), tmp_path)
    rows = list(MetricRows(finished.run.metrics_path))
    assert len(rows) >= 3
    assert all(abs(row["train/approx_kl"]) < 1e-9 for row in rows)


def test_burn_in_takes_the_weights_as_they_are(tmp_path: Path) -> None:
    """After the weights have moved, a state that is computed anew is another one than the stored state."""
    states: dict[int, list[torch.Tensor]] = {}

    class Watching:
        """Keeps the first states of all minibatches."""

        def batch(self, batch: Any, c: Any) -> None:
            self.states: list[torch.Tensor] = []

        def gradients(self, number: int, minibatch: Any, outputs: Any, loss: Any) -> None:
            self.states.append(minibatch["state"].clone())

        def stepped(self, number: int) -> None:
            pass

        def finished(self, iteration: int, env_steps: int) -> None:
            states[len(states)] = self.states

    for burn_in in (0, 4):
        policy = {"burn_in": burn_in, "memory": "lstm", "memory_size": 8, "sequence_length": 8, "hidden": [8]}
        algo = {"learning_rate": 0.1, "batch_size": 32, "n_epochs": 1}
        trainer = build(small("ppo", HIDDEN, policy=policy, algo=algo).config)
        trainer.observer = Watching()
        trainer.start()
        trainer.learn_once(StageTimer())
        trainer.close()
    stored, anew = states[0], states[1]
    assert len(stored) == len(anew) == N_ENVS * N_STEPS // 32
    torch.testing.assert_close(stored[0], anew[0], rtol=0, atol=1e-5)  # the weights have not moved yet
    assert (stored[1] - anew[1]).abs().max() > 1e-3


WRONG: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "longer than the rollout": (
        "ppo",
        HIDDEN,
        {"sequence_length": 2 * N_STEPS},
        "policy.sequence_length (32) is longer than the rollout: algo.n_steps is 16. Lower the one or raise the other.",
    ),
    "no divisor": (
        "ppo",
        HIDDEN,
        {"sequence_length": 5},
        "must be a multiple of policy.sequence_length (got 16 and 5)",
    ),
    "nothing so far back": ("a2c", HIDDEN, {"burn_in": 3}, "policy.burn_in (3) looks back from sequences of 16 steps"),
    "whole episodes": ("reinforce", HIDDEN, {"sequence_length": 4}, "learns from whole episodes: remove them"),
}


@pytest.mark.parametrize("case", WRONG)
def test_sequences_that_cannot_be_are_refused(case: str) -> None:
    algorithm, env, policy, words = WRONG[case]
    with pytest.raises(ConfigError) as caught:
        build(small(algorithm, env, policy={"memory": "lstm", **policy}).config)
    assert words in " ".join(str(caught.value).split())


def test_envs_whose_rows_change_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnast.envs.wrappers.encoding.OneHot.keeps_slots", False)
    env = {"id": "FrozenLake-v1", "wrappers": ["one_hot"]}
    with pytest.raises(ConfigError, match="permutes or skips slots"):
        build(small("ppo", env, policy={"memory": "gru"}).config)
    build(small("ppo", env).config).close()


@pytest.mark.learning
def test_it_learns_what_a_policy_without_memory_cannot(tmp_path: Path) -> None:
    """CartPole without velocities."""
    settings = {"train.env_steps": 40_000, "log.video": False, "spec.solved_at": 400}
    found = run(resolve("CartPole-v1:position_recurrent_ppo", settings=settings), tmp_path)
    assert found.evaluation is not None and found.evaluation.mean >= 400
