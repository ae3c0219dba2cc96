"""One policy update: minibatches → outputs → derivatives → clip → optimizer step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from gymnast.algorithms.base import Algorithm, Coefficients, Loss, Outputs
from gymnast.algorithms.optimizer import Optimizer
from gymnast.errors import NonFiniteError
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.buffer import Batch
from gymnast.training.captured import CapturedUpdate, can_capture


@dataclass
class UpdateResult:
    """Means over all minibatches of the update, by catalogue name."""

    statistics: dict[str, float]
    updates: int
    epochs: int
    stopped_by_kl: bool


class Observer(Protocol):
    """Looks on while a batch is learned from; used by traces and `gymnast rewind`."""

    def batch(self, batch: Batch, c: Coefficients) -> None:
        """The whole batch with its targets, before the first minibatch."""

    def gradients(self, number: int, minibatch: Batch, outputs: Outputs, loss: Loss) -> None:
        """Update `number` of this batch, from 0: its gradient is in `flat.grads`, not yet clipped."""

    def stepped(self, number: int) -> None:
        """The weights have moved."""


@dataclass(frozen=True)
class Learner:
    """What an update works with."""

    policy: ActorCritic
    flat: FlatParameters
    optimizer: Optimizer
    algorithm: Algorithm
    generator: torch.Generator
    captured: dict[int, CapturedUpdate] = field(default_factory=dict)
    """The captured form of the update on a GPU, by where its samples lie."""


def update(learner: Learner, batch: Batch, c: Coefficients, observer: Observer | None = None) -> UpdateResult:
    """All epochs over one batch; a gradient that is not finite leaves weights and optimizer as they were before it."""
    if observer is None and can_capture(learner, batch):
        return LaunchedUpdate(learner, batch, c).result()
    before = _Before(learner)
    if observer is not None:
        observer.batch(batch, c)
    try:
        return _epochs(learner, batch, c, observer)
    except NonFiniteError as error:
        before.restore()
        error.batch = batch
        raise


class _Before:
    """Weights and moments to go back to."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._weights = learner.flat.values.clone()
        self._moments = {name: tensor.clone() for name, tensor in learner.optimizer.state().items()}

    def restore(self) -> None:
        """Put them back."""
        with torch.no_grad():
            self._learner.flat.values.copy_(self._weights)
        self._learner.optimizer.load_state(self._moments)


def _epochs(learner: Learner, batch: Batch, c: Coefficients, observer: Observer | None) -> UpdateResult:
    policy, algorithm, generator = learner.policy, learner.algorithm, learner.generator
    size = algorithm.batch_size(len(batch))
    means: list[Tensor] = []
    names: list[str] = []
    norms: list[Tensor] = []
    n_epochs = max(1, round(c.get("n_epochs", 1.0)))
    stopped = False
    if observer is None:
        batch = replace(batch, obs=policy.encoder.packed(batch.obs))
    # The hand-written path needs no autograd bookkeeping at all; a policy with other layers records its own graph.
    with torch.inference_mode(policy.by_hand), torch.no_grad():
        for epochs in range(1, n_epochs + 1):  # noqa: B007 - the count of epochs done is a result
            first = len(means)
            for minibatch in _minibatches(batch, size, generator, whole=policy.by_hand):
                outputs, loss = gradients(learner, minibatch, c)
                if observer is not None:
                    observer.gradients(len(means), minibatch, outputs, loss)
                names = list(loss.statistics)
                means.append(torch.stack(list(loss.statistics.values())).mean(1))
                norms.append(_step(learner, c))
                if observer is not None:
                    observer.stepped(len(means) - 1)
            if "target_kl" in c and "train/approx_kl" in names:
                kl = torch.stack(means[first:])[:, names.index("train/approx_kl")].mean()
                if float(kl) > c["target_kl"]:  # host sync: once per epoch, only when asked for
                    stopped = True
                    break
        statistics = dict(zip(names, torch.stack(means).mean(0).tolist()))  # the one sync of the iteration
        statistics["train/grad_norm"] = float(torch.stack(norms).mean())
        statistics["train/loss"] = _total(statistics, c)
        if "train/approx_kl" not in statistics:
            statistics["train/approx_kl"] = _kl_after(policy, batch)
    return UpdateResult(statistics, len(means), epochs, stopped)


def _minibatches(batch: Batch, size: int, generator: torch.Generator, *, whole: bool) -> Iterator[Batch]:
    """The samples in a fresh permutation; when one minibatch holds everything their order means nothing.

    `whole` gathers them all at once, which is faster for small ones; a second copy of a rollout of images would only take room.
    """
    n = len(batch)
    if size >= n:
        yield batch
    elif whole:
        yield from batch.select(_permutation(n, generator, batch)).split(size)
    else:
        for index in _permutation(n, generator, batch).split(size):
            yield batch.select(index)


class LaunchedUpdate:
    """All epochs by captured graphs: launched at once, so that the host does other things until `result` is asked for.

    A `target_kl` makes the launch wait for the GPU after every epoch.
    """

    def __init__(self, learner: Learner, batch: Batch, c: Coefficients) -> None:
        self._learner, self._batch, self._c = learner, batch, c
        self._before = _Before(learner)
        self._names: list[str] = []
        self._rows: list[Tensor] = []
        self._epochs, self._stopped = 0, False
        self._launch()
        self._done = torch.cuda.Event()
        self._done.record()

    def _launch(self) -> None:
        learner, batch, c, rows = self._learner, self._batch, self._c, self._rows
        where = batch.action.data_ptr()
        if where not in learner.captured:
            learner.captured[where] = CapturedUpdate(learner)
        captured = learner.captured[where]
        captured.load(batch, c)
        n, size = len(batch), learner.algorithm.batch_size(len(batch))
        for _ in range(max(1, round(c.get("n_epochs", 1.0)))):
            self._epochs += 1
            first = len(rows)
            for index in _permutation(n, learner.generator, batch).split(size):
                rows.append(captured.run(index))
            self._names = captured.names
            if "target_kl" in c and "train/approx_kl" in self._names:
                kl = torch.stack(rows[first:])[:, self._names.index("train/approx_kl")].mean()
                if float(kl) > c["target_kl"]:
                    self._stopped = True
                    return

    def busy(self) -> bool:
        """Whether the GPU is still at it."""
        return not self._done.query()

    def result(self) -> UpdateResult:
        """What it did; waits for it. A gradient that was not finite leaves weights and optimizer as they were before."""
        means = torch.stack(self._rows).mean(0).tolist()  # the one sync of the iteration
        if not math.isfinite(means[-1]):
            self._before.restore()
            error = _not_finite()
            error.batch = self._batch
            raise error
        statistics = dict(zip([*self._names, "train/grad_norm"], means, strict=True))
        statistics["train/loss"] = _total(statistics, self._c)
        if "train/approx_kl" not in statistics:
            with torch.no_grad():
                statistics["train/approx_kl"] = _kl_after(self._learner.policy, self._batch)
        return UpdateResult(statistics, len(self._rows), self._epochs, self._stopped)


def _permutation(n: int, generator: torch.Generator, batch: Batch) -> Tensor:
    return torch.randperm(n, generator=generator, device=generator.device).to(batch.action.device)


def gradients(learner: Learner, batch: Batch, c: Any) -> tuple[Outputs, Loss]:
    """Gradients of one minibatch into `flat.grads`; returns what was computed on the way, on the device."""
    policy = learner.policy
    learner.flat.grads.zero_()
    params, value, tape = policy.run(batch.obs, batch.mask)
    log_prob, entropy, saved = policy.distribution.evaluate(params, batch.action)
    outputs = Outputs(log_prob, entropy, value)
    loss = learner.algorithm.loss(outputs, batch, c)
    policy.backprop(tape, policy.distribution.backward(saved, loss.d_log_prob, loss.d_entropy), loss.d_value)
    return outputs, loss


def _step(learner: Learner, c: Coefficients) -> Tensor:
    """Check, clip and apply the gradients."""
    flat = learner.flat
    norm = flat.norm()
    value = float(norm)
    if not math.isfinite(value):
        raise _not_finite()
    limit = c.get("max_grad_norm")
    if limit is not None and value > limit:
        flat.grads.mul_(limit / (value + 1e-6))
    learner.optimizer.step(c["learning_rate"])
    return norm


def _not_finite() -> NonFiniteError:
    return NonFiniteError(
        "The gradient is NaN or infinite; the weights are unchanged. Usual causes: a learning rate that is too high, "
        "rewards or observations of huge size (try policy.normalize_obs=true algo.normalize_reward=true)."
    )


def _total(statistics: dict[str, float], c: Coefficients) -> float:
    total = statistics["train/policy_loss"] - c.get("ent_coef", 0.0) * statistics["train/entropy"]
    return total + c.get("vf_coef", 0.0) * statistics.get("train/value_loss", 0.0)


def _kl_after(policy: ActorCritic, batch: Batch) -> float:
    """How far a single-step algorithm moved: k3 estimate between the policy before and after."""
    params = policy.act(batch.obs, None, batch.mask)[1]
    log_prob, _, _ = policy.distribution.evaluate(params, batch.action)
    log_ratio = log_prob - batch.log_prob
    return float((log_ratio.exp() - 1.0 - log_ratio).mean())
