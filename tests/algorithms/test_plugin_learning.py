"""Algorithms and policies of plug-ins that use what the core opens to them: trained, saved and resumed by the run's own loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch
from installed import Install

from gymnast.config.load import Resolved, from_saved, validate
from gymnast.errors import ConfigError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.train import Resume, resume_point, train
from gymnast.training.trainer import policy_tensors

CURIOUS = '''
"""PPO with a network of its own, a second value and a field of its own."""
from typing import Literal
import torch
from torch import nn
from gymnast.algorithms.base import Algorithm as Base, Field, Head
from gymnast.algorithms.ppo import PPO
from gymnast.config.algorithms import PPOConfig
from gymnast.config.algorithms.base import Rate

class Config(PPOConfig):
    id: Literal["curious"]
    predictor_learning_rate: Rate = 1e-2

class Algorithm(PPO):
    heads = (Head("value_int", bootstrapped=True),)
    loss = Base.loss

    def modules(self, policy):
        torch.manual_seed(5)
        self.predictor = nn.Linear(policy.encoder.size, 1)
        return {"predictor": self.predictor}

    def fields(self, policy):
        return [Field("bonus")]

    def targets(self, rollout, c, policy):
        t = rollout.length
        with torch.no_grad():
            bonus = self.error(rollout.flat_obs(t).float()).view(t, -1)
        rollout["bonus"][:t] = bonus
        batch = super().targets(rollout, c, policy)
        batch["target_int"] = batch["bonus"] + 0.9 * torch.from_numpy(rollout.next["value_int"][:t]).flatten()
        return batch

    def error(self, obs):
        return (self.predictor(obs)[:, 0] - obs.sum(1)).square()

    def objective(self, outputs, batch, c):
        ratio = (outputs["log_prob"] - batch["log_prob"]).exp()
        policy_loss = -ratio.clamp(0.8, 1.2) * batch["advantage"]
        value_loss = (outputs["value"] - batch["target"]).square()
        value_loss = value_loss + (outputs["value_int"] - batch["target_int"]).square()
        error = self.error(batch.obs)
        total = (policy_loss + 0.5 * value_loss + error).mean()
        return total, {"train/policy_loss": policy_loss, "train/value_loss": value_loss, "train/novelty": error}
'''
SUMMING = """
from typing import Literal
from gymnast.config.schema import PolicyConfig
from small_policies import Summing as Policy

class Config(PolicyConfig):
    id: Literal["summing"]
    sequence_length: int | None = None
"""
ITERATION = 4 * 16
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"id": "ppo", "n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "a2c": {"id": "a2c", "n_steps": 16},
}
OWN = {**ALGORITHMS["ppo"], "id": "curious"}


def config(env_steps: int, algo: dict[str, Any], **sections: Any) -> Resolved:
    """Few envs, short rollouts, one evaluation in the middle."""
    data: dict[str, Any] = {
        "name": f"CartPole-v1:{algo['id']}",
        "env": {"id": "CartPole-v1", "n_envs": 4, "time_limit": 13},
        "policy": {"hidden": [8]},
        "algo": algo,
        "train": {"env_steps": env_steps, "stop_when_solved": False, "checkpoint_every": 10**9},
        "eval": {"every": 2 * ITERATION, "episodes": 2},
        **sections,
    }
    return Resolved(validate(data, {}))


def trained(resolved: Resolved, root: Path) -> Run:
    """A finished run."""
    result = train(resolved, root)
    assert result is not None
    return result.run


def resumed(run: Run, env_steps: int) -> Run:
    """The same run, gone on to so many steps."""
    saved = run.config()
    saved["train"]["env_steps"] = env_steps
    point, skipped = resume_point(run)
    assert not skipped
    result = train(from_saved(saved), run.root, resume=Resume(run, point))
    assert result is not None
    return result.run


def end_of(run: Run) -> checkpoint.Checkpoint:
    """Its last checkpoint."""
    name = checkpoint.read_pointer(run.folder, "last")
    assert name is not None
    return checkpoint.load(run.folder / "checkpoints" / name)


def differing(first: Any, second: Any, path: str = "") -> list[str]:
    """Where two trees are not equal to the bit."""
    if isinstance(first, dict):
        assert first.keys() == second.keys(), path
        return [found for key in first for found in differing(first[key], second[key], f"{path}/{key}")]
    if isinstance(first, (list, tuple)):
        pairs = enumerate(zip(first, second, strict=True))
        return [found for i, (a, b) in pairs for found in differing(a, b, f"{path}/{i}")]
    if isinstance(first, (torch.Tensor, np.ndarray)):
        return [] if np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True) else [path]
    return [] if first == second else [f"{path}: {first!r} and {second!r}"]


def assert_same(whole: Run, half: Run) -> None:
    """Both ended in the same place, to the bit, and said the same on the way."""
    one, other = end_of(whole), end_of(half)
    assert one.manifest.step == other.manifest.step == 4 * ITERATION
    assert differing(one.policy, other.policy) == []
    assert differing(one.state["session"], other.state["session"]) == []
    rows = [
        [{key: value for key, value in row.items() if key.startswith(("train/", "rollout/"))} for row in MetricRows(p)]
        for p in (whole.metrics_path, half.metrics_path)
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 4


def test_an_algorithms_network_is_trained_saved_and_resumed(install: Install, tmp_path: Path) -> None:
    """With its optimizer and its own learning rate; it is no part of the policy, and its metrics are in the rows."""
    install("curious_one", CURIOUS, algorithms="curious = curious_one")
    whole = trained(config(4 * ITERATION, OWN), tmp_path / "whole")
    half = trained(config(2 * ITERATION, OWN), tmp_path / "half")
    middle = end_of(half)
    assert_same(whole, resumed(half, 4 * ITERATION))

    saved = end_of(whole)
    own = saved.state["session"]["modules"]["predictor"]
    assert own["weights"].keys() == {"weight", "bias"}
    assert not any("predictor" in name for name in saved.policy)
    earlier = middle.state["session"]["modules"]["predictor"]["weights"]["weight"]
    assert not torch.equal(torch.as_tensor(own["weights"]["weight"]), torch.as_tensor(earlier))
    rows = list(MetricRows(whole.metrics_path))
    assert all(row["train/novelty"] > 0 for row in rows) and rows[-1]["train/novelty"] < rows[0]["train/novelty"]
    assert rows[0]["train/predictor_learning_rate"] == 1e-2


@pytest.mark.parametrize("optimizer", [True, False])
def test_a_boundary_holds_its_network(optimizer: bool, install: Install) -> None:
    """Weights always; the moments of all optimizers where they are asked for, none where a fresh start is."""
    install("curious_one", CURIOUS, algorithms="curious = curious_one")
    resolved = config(4 * ITERATION, OWN)
    trainer, other, untouched = (build(resolved.config) for _ in range(3))
    trainer.start()
    trainer.learn_once(StageTimer())
    (own,), (fresh,), (new,) = (one.learner.modules for one in (trainer, other, untouched))
    assert not torch.equal(own.flat.values, fresh.flat.values)
    counters = trainer.counters.at(0.0)
    other.load_state(policy_tensors(trainer.policy), trainer.state(), counters, optimizer=optimizer)
    assert torch.equal(own.flat.values, fresh.flat.values)
    expected = (trainer.optimizer, own.optimizer) if optimizer else (untouched.optimizer, new.optimizer)
    for loaded, wanted in zip((other.optimizer, fresh.optimizer), expected, strict=True):
        assert differing(loaded.state(), wanted.state()) == []
    for one in (trainer, other, untouched):
        one.close()


@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_a_policy_that_remembers_trains_and_resumes_exactly(algorithm: str, install: Install, tmp_path: Path) -> None:
    """Episodes go on over the ends of rollouts and of the run; what was remembered is part of the boundary."""
    install("summing_one", SUMMING, policies="summing = summing_one")
    policy = {"id": "summing", "sequence_length": 8 if algorithm == "ppo" else None}

    whole = trained(config(4 * ITERATION, ALGORITHMS[algorithm], policy=policy), tmp_path / "whole")
    half = trained(config(2 * ITERATION, ALGORITHMS[algorithm], policy=policy), tmp_path / "half")
    boundary = end_of(half).state["session"]["rollout"]
    assert boundary["state"].shape == (4, 1) and np.abs(boundary["state"]).max() > 0 and not boundary["starts"].all()
    assert_same(whole, resumed(half, 4 * ITERATION))
    begin, end = end_of(half).policy, end_of(whole).policy
    assert all(not torch.equal(torch.as_tensor(begin[name]), torch.ones(())) for name in ("pace", "critic"))
    assert begin.keys() == end.keys()


def test_rollouts_must_be_whole_sequences(install: Install) -> None:
    install("summing_one", SUMMING, policies="summing = summing_one")
    with pytest.raises(
        ConfigError, match=r"algo\.n_steps must be a multiple of policy\.sequence_length \(got 16 and 5\)"
    ):
        build(config(ITERATION, ALGORITHMS["ppo"], policy={"id": "summing", "sequence_length": 5}).config)
    with pytest.raises(ConfigError, match="learns from sequences of a fixed length: use ppo or a2c"):
        build(config(ITERATION, {"id": "reinforce", "baseline": "learned"}, policy={"id": "summing"}).config)
