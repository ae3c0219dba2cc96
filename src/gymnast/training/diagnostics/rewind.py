"""`gymnast rewind`: run a training again up to one update, and keep everything that update saw and did (RUN-14).

Training is exact from any checkpoint, so the iteration that holds a step is repeated to the bit: from the nearest checkpoint
before it, or from the beginning where that is nearer. The run itself is not touched.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from gymnast.algorithms import own_trainer
from gymnast.algorithms.base import Coefficients, Loss, Outputs
from gymnast.errors import CheckpointError, UsageError
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch
from gymnast.runs import checkpoint, lineage
from gymnast.runs.store import Run
from gymnast.runs.trust import usable
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.diagnostics.tracing import Hashes, HashObserver, read_trace
from gymnast.training.on_policy import OnPolicyTrainer
from gymnast.training.trainer import repeats
from gymnast.training.transfer.begin import begin_again


@dataclass(frozen=True)
class Target:
    """Which iteration is wanted."""

    iteration: int
    env_steps: int
    """Env steps at its end."""
    attempt: int = 1
    """The attempt that ran it."""
    resumed_from: int = 0
    """Env steps that attempt began at."""


@dataclass(frozen=True)
class Rewound:
    """One update, as it happened."""

    folder: Path
    target: Target
    start: str
    """What was loaded to get there: a checkpoint's name, or `the beginning`."""
    iterations: int
    """How many iterations were run again."""
    update: int
    """Number of the update within its iteration, from 1."""
    updates: list[dict[str, float]]
    """Losses and gradient norm of every update of the iteration."""
    proof: str
    """`equal`, `different` or `not traced`."""


def find_target(run: Run, step: int) -> Target:
    """The iteration in which env step `step` was taken."""
    reached: int | None = None
    attempt, began = 0, 0
    for row in MetricRows(run.metrics_path):
        reached = int(row["env_steps"])
        if row["attempt"] != attempt:  # only the first row of an attempt says where it took over
            attempt, began = int(row["attempt"]), int(row.get("resumed_from") or 0)
        if reached >= step:
            return Target(int(row["iteration"]), reached, attempt, began)
    if reached is None:
        raise UsageError(f"Run {run.id} has no metrics yet: there is nothing to rewind to.")
    raise UsageError(f"Run {run.id} reached {reached:,} env steps, not {step:,}.")


class Recorder(HashObserver):
    """Hashes everything, and keeps one update whole."""

    def __init__(self, flat: FlatParameters, names: list[str], wanted: int | None) -> None:
        super().__init__(flat)
        self.tensors: dict[str, Tensor] = {}
        self.updates: list[dict[str, float]] = []
        self.coefficients: Coefficients = {}
        self.kept = -1
        self._names, self._wanted = names, wanted

    def batch(self, batch: Batch, c: Coefficients) -> None:
        """The whole batch with its targets."""
        super().batch(batch, c)
        self.coefficients = dict(c)
        self.tensors |= {f"batch.{name}": tensor.clone() for name, tensor in batch.tensors().items()}

    def gradients(self, number: int, minibatch: Batch, outputs: Outputs, loss: Loss) -> None:
        """Losses of every update; samples, outputs and gradients of the wanted one (the last, when none is named)."""
        super().gradients(number, minibatch, outputs, loss)
        means = {name: float(values.mean()) for name, values in loss.statistics.items()}
        self.updates.append({**means, "train/grad_norm": float(self._flat.norm())})
        if self._wanted is not None and number != self._wanted:
            return
        self.kept = number
        kept = {name: tensor for name, tensor in self.tensors.items() if name.startswith("batch.")}
        kept |= {f"minibatch.{name}": tensor.clone() for name, tensor in minibatch.tensors().items()}
        kept |= {f"outputs.{name}": tensor.clone() for name, tensor in outputs.items()}
        for name, gradient in loss.gradients.items():
            if isinstance(gradient, Tensor):
                kept[f"loss.d_{name}"] = gradient.clone()
        kept |= {f"loss.{name}": values.clone() for name, values in loss.statistics.items()}
        kept |= self._parameters("gradient", self._flat.grads) | self._parameters("weights_before", self._flat.values)
        self.tensors = kept

    def stepped(self, number: int) -> None:
        """The weights after the wanted update."""
        super().stepped(number)
        if number == self.kept:
            self.tensors |= self._parameters("weights_after", self._flat.values)

    def _parameters(self, kind: str, values: Tensor) -> dict[str, Tensor]:
        pieces = self._flat.split(values)
        return {f"{kind}.{name}": piece.clone() for name, piece in zip(self._names, pieces, strict=True)}


def rewind(
    run: Run,
    step: int,
    *,
    update: int | None = None,
    folder: Path | None = None,
    on_iteration: Callable[[int, int], None] | None = None,
) -> Rewound:
    """Repeat the iteration of env step `step` and write what its update number `update` (the last by default) did."""
    target = find_target(run, step)
    config = usable(run, attempt=target.attempt).config
    if own_trainer(config.algo.id) is not None:
        raise UsageError(f"Only updates from rollouts can be repeated: run {run.id} was trained by {config.algo.id}.")
    trainer = build(config)
    try:
        came_from = _go_to(run, trainer, target)
        first = trainer.counters.iteration
        trainer.start()
        names = [name for name, _ in trainer.policy.named_parameters()]
        recorder = Recorder(trainer.flat, names, None if update is None else update - 1)
        timer = StageTimer()
        while trainer.counters.iteration < target.iteration:
            last = trainer.counters.iteration == target.iteration - 1
            trainer.observer = recorder if last else None
            trainer.learn_once(timer)
            trainer.go_on()
            if on_iteration is not None:
                on_iteration(trainer.counters.iteration - first, target.iteration - first)
    finally:
        trainer.close()
    if trainer.counters.env_steps != target.env_steps:
        raise CheckpointError(
            f"Repeating run {run.id} led to {trainer.counters.env_steps:,} env steps where it had {target.env_steps:,}: "
            "its env is not deterministic, or the run was continued with other settings."
        )
    if recorder.kept < 0:
        raise UsageError(
            f"Iteration {target.iteration} of run {run.id} has {len(recorder.updates)} updates: --update goes from 1 to that."
        )
    folder = folder or run.folder / "rewind" / f"step={target.env_steps}-update={recorder.kept + 1}"
    proof = _proof(read_trace(run.folder / "trace.jsonl", target.iteration), recorder.hashes)
    rewound = Rewound(
        folder,
        target,
        came_from,
        trainer.counters.iteration - first,
        recorder.kept + 1,
        recorder.updates,
        proof,
    )
    _write(rewound, run, recorder, trainer)
    return rewound


def _go_to(run: Run, trainer: OnPolicyTrainer, target: Target) -> str:
    """Load the newest checkpoint before the target's iteration; without one the run starts from its seed again."""
    for step in reversed(checkpoint.steps(run.folder)):
        if step >= target.env_steps:
            continue
        try:
            saved = checkpoint.load(run.checkpoints / f"step={step}")
        except CheckpointError:
            continue  # damaged: an older one does as well
        with checkpoint.understood(saved.folder):
            whole = repeats(saved.state)
        if step != target.resumed_from and not whole:
            continue  # saved between two resets of envs that cannot be saved
        if step > target.resumed_from and saved.manifest.created < _began(run, target.attempt):
            continue  # left by an earlier attempt that went on from there in its own way
        _check_reach(run, target, step)
        optimizer = step > target.resumed_from or target.attempt == 1 or _with_optimizer(run, target.attempt)
        with checkpoint.understood(saved.folder):
            trainer.load_state(saved.policy, saved.state["session"], saved.manifest.counters, optimizer=optimizer)
        return f"step={step}"
    _check_reach(run, target, 0)
    begin_again(trainer, run)
    return "the beginning"


def _check_reach(run: Run, target: Target, step: int) -> None:
    """Steps before a resume under other settings cannot be repeated under the new ones."""
    if step >= target.resumed_from:
        return
    between = [one for one in lineage.read(run.folder).attempts if one.attempt <= target.attempt]
    if any(one.changes or not one.optimizer for one in between):
        raise UsageError(
            f"Run {run.id} was continued with other settings at {target.resumed_from:,} env steps, and the checkpoint of that "
            "moment is gone. Keep more of them with train.keep_checkpoints."
        )


def _began(run: Run, attempt: int) -> str:
    """When an attempt began, as text to compare; empty for the first."""
    return next((one.at for one in lineage.read(run.folder).attempts if one.attempt == attempt), "")


def _with_optimizer(run: Run, attempt: int) -> bool:
    return all(one.optimizer for one in lineage.read(run.folder).attempts if one.attempt == attempt)


def _proof(logged: Hashes | None, found: Hashes) -> str:
    if logged is None:
        return "not traced"
    if logged == found:
        return "equal"
    return "different"


def _write(rewound: Rewound, run: Run, recorder: Recorder, trainer: OnPolicyTrainer) -> None:
    rewound.folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in recorder.tensors.items()}
    save_file(tensors, rewound.folder / "update.safetensors")
    about: dict[str, Any] = {
        "run": run.id,
        "config": trainer.config.name,
        "iteration": rewound.target.iteration,
        "env_steps": rewound.target.env_steps,
        "update": rewound.update,
        "updates_in_iteration": len(rewound.updates),
        "from": rewound.start,
        "iterations_repeated": rewound.iterations,
        "coefficients": recorder.coefficients,
        "losses": [{name: _finite(value) for name, value in one.items()} for one in rewound.updates],
        "hashes": vars(recorder.hashes),
        "proof": rewound.proof,
        "torch": torch.__version__,
        "tensors": {name: [str(tensor.dtype), list(tensor.shape)] for name, tensor in tensors.items()},
    }
    (rewound.folder / "update.json").write_text(json.dumps(about, indent=1, allow_nan=False) + "\n")


def _finite(value: float) -> float | None:
    if math.isfinite(value):
        return value
    return None
