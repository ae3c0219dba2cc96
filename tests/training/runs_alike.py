"""Small runs for the tests of training: making their configs, stopping them by a signal, comparing how they ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import small_envs  # noqa: F401 - registers the envs
import torch

from gymnast.config.load import Resolved, validate
from gymnast.metrics.history import History
from gymnast.metrics.sinks.jsonl import NOT_METRICS, MetricRows
from gymnast.runs import checkpoint
from gymnast.runs.store import Run
from gymnast.training.keeping.report import Reporter
from gymnast.training.keeping.result import TrainResult
from gymnast.training.on_policy import OnPolicyTrainer
from gymnast.training.train import Resume, resume_point, train
from gymnast.training.trainer import Trainer

N_ENVS, N_STEPS = 4, 16
PER_ITERATION = N_ENVS * N_STEPS
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"id": "ppo", "n_steps": N_STEPS, "batch_size": 32, "n_epochs": 2, "clip_range": "lin_0.2"},
    "a2c": {"id": "a2c", "n_steps": N_STEPS, "ent_coef": 0.01},
    "reinforce": {"id": "reinforce", "baseline": "learned"},
}


def small(algorithm: str, env: dict[str, Any], *, env_steps: int = 6 * PER_ITERATION, **changes: Any) -> Resolved:
    """A config of a few iterations in which everything that could be forgotten changes: rates, statistics, evaluations."""
    data: dict[str, Any] = {
        "name": f"{env['id']}:{algorithm}",
        "env": {"n_envs": N_ENVS, **env},
        "policy": {"hidden": [16]},
        "algo": {**ALGORITHMS[algorithm], "learning_rate": "lin_1e-2"},
        "train": {"env_steps": env_steps, "stop_when_solved": False, "checkpoint_every": 10**9},
        "eval": {"every": 2 * PER_ITERATION, "episodes": 3},
        "log": {"window": 5, "report": False},
    }
    for section, values in changes.items():
        data[section] = {**data.get(section, {}), **values}
    return Resolved(validate(data, {}))


class Watcher(Reporter):
    """Keeps what was done in every iteration and sends this process a signal after some of them."""

    def __init__(self, stop_after: int | None = None, number: signal.Signals = signal.SIGINT) -> None:
        super().__init__(quiet=True)
        self.stop_after, self.number = stop_after, number
        self.trainer: OnPolicyTrainer | None = None
        self.actions: list[torch.Tensor] = []
        self.warnings: list[str] = []
        """All but alerts, which judge settings: runs as small as these have some."""

    def summary(self, trainer: Trainer, resolved: Resolved, resumed: str | None) -> None:
        """Remember whose rollouts to look at."""
        assert isinstance(trainer, OnPolicyTrainer)
        self.trainer = trainer

    def warn(self, text: str) -> None:
        """Keep it."""
        if not text.startswith("alert "):
            self.warnings.append(text)

    def update(self, history: History, now: float, marks: Any = None) -> None:
        """After every iteration."""
        assert self.trainer is not None
        rollout = self.trainer.rollout
        self.actions.append(rollout["action"][: rollout.length].clone())
        if len(self.actions) == self.stop_after:
            signal.raise_signal(self.number)


def run(resolved: Resolved, root: Path, watcher: Watcher | None = None) -> TrainResult:
    """Train."""
    result = train(resolved, root, reporter=watcher or Watcher())
    assert result is not None
    return result


def resume(resolved: Resolved, run: Run, watcher: Watcher | None = None) -> TrainResult:
    """Continue from the newest checkpoint."""
    point, skipped = resume_point(run)
    assert not skipped
    result = train(resolved, run.root, reporter=watcher or Watcher(), resume=Resume(run, point))
    assert result is not None
    return result


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Where two trees of numbers, text, tensors and arrays are not equal to the bit."""
    if type(first) is not type(second):
        return [f"{path}: {type(first).__name__} and {type(second).__name__}"]
    if isinstance(first, dict):
        if first.keys() != second.keys():
            return [f"{path}: keys {sorted(first.keys() ^ second.keys())}"]
        return [problem for key in first for problem in differences(first[key], second[key], f"{path}/{key}")]
    if isinstance(first, (list, tuple)):
        if len(first) != len(second):
            return [f"{path}: lengths {len(first)} and {len(second)}"]
        pairs = enumerate(zip(first, second, strict=True))
        return [problem for i, (a, b) in pairs for problem in differences(a, b, f"{path}/{i}")]
    if isinstance(first, torch.Tensor):
        return differences(first.numpy(), second.numpy(), path)
    if isinstance(first, np.ndarray):
        same = first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()
        return [] if same else [f"{path}: {first} and {second}"]
    return [] if first == second else [f"{path}: {first!r} and {second!r}"]


def end_of(run: Run) -> dict[str, Any]:
    """All that the last checkpoint and the metrics say, without times and memory."""
    name = checkpoint.read_pointer(run.folder, "last")
    assert name is not None
    saved = checkpoint.load(run.folder / "checkpoints" / name)
    return {
        "step": saved.manifest.step,
        "policy": saved.policy,
        "state": saved.state,
        "counters": {key: value for key, value in saved.manifest.counters.items() if key != "seconds"},
        "metrics": _timeless(saved.manifest.metrics),
        "rows": [_timeless(row) for row in MetricRows(run.metrics_path)],
        "best": checkpoint.read_pointer(run.folder, "best"),
    }


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in row if not key.startswith(("time/", "sys/")) and key not in NOT_METRICS}


def assert_same_end(first: Run, second: Run) -> None:
    """Both runs ended in the same place by the same way, to the last bit."""
    problems = differences(end_of(first), end_of(second))
    assert not problems, "\n".join(problems[:20])
