"""One policy update: minibatches → outputs → derivatives → clip → optimizer step.

The epochs, their order, the KL stop and what happens to bad gradients are written once. How one minibatch goes from samples
to moved weights is a seam with two ways: `Eager`, operation after operation, and `Captured`, as a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from gymnast.algorithms.base import Algorithm, Coefficients, Loss, Outputs
from gymnast.algorithms.optimizer import Optimizer
from gymnast.errors import NonFiniteError
from gymnast.policies.base import Policy
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch, Order, column_order, flat_order


@dataclass
class UpdateResult:
    """Means over all minibatches of the update, by catalogue name."""

    statistics: dict[str, float]
    updates: int
    epochs: int
    stopped_by_kl: bool
    before: Before
    """What the policy's weights were."""
    last_norm: float
    """Of the last minibatch's gradient, before it was clipped; that gradient still lies in `flat.grads`."""


class Observer(Protocol):
    """Looks on while a batch is learned from; used by traces and `gymnast rewind`."""

    def batch(self, batch: Batch, c: Coefficients) -> None:
        """The whole batch with its targets, before the first minibatch."""

    def gradients(self, number: int, minibatch: Batch, outputs: Outputs, loss: Loss) -> None:
        """Update `number` of this batch, from 0: its gradient is in `flat.grads`, not yet clipped."""

    def stepped(self, number: int) -> None:
        """The weights have moved."""

    def finished(self, iteration: int, env_steps: int) -> None:
        """The iteration has ended at this boundary."""


@dataclass(frozen=True)
class Network:
    """Parameters that are learned together, and their optimizer."""

    name: str
    module: nn.Module
    flat: FlatParameters
    optimizer: Optimizer

    def rate(self, c: Any) -> Any:
        """Its learning rate: a coefficient of its own where the config has one."""
        return c.get(f"{self.name}_learning_rate", c["learning_rate"])

    def state(self) -> dict[str, Any]:
        """Weights and moments for the checkpoint."""
        weights = {name: tensor.detach() for name, tensor in self.module.state_dict().items()}
        return {"weights": weights, "optimizer": self.optimizer.state()}

    def load_state(self, state: dict[str, Any], *, optimizer: bool = True) -> None:
        """Restore weights and, if asked, the optimizer's moments."""
        self.module.load_state_dict(state["weights"])
        if optimizer:
            self.optimizer.load_state(state["optimizer"])


@dataclass(frozen=True)
class Learner:
    """What an update works with."""

    policy: Policy
    flat: FlatParameters
    optimizer: Optimizer
    algorithm: Algorithm
    generator: torch.Generator
    modules: list[Network] = field(default_factory=list)
    """The algorithm's own networks."""

    def all_flat(self) -> list[tuple[FlatParameters, Optimizer]]:
        """Everything that an update moves."""
        return [(self.flat, self.optimizer), *((one.flat, one.optimizer) for one in self.modules)]


class Before:
    """Weights and moments as they are now, to go back to."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._kept = [
            (flat.values.clone(), {name: tensor.clone() for name, tensor in optimizer.state().items()})
            for flat, optimizer in learner.all_flat()
        ]

    @property
    def weights(self) -> Tensor:
        """Of the policy, flat."""
        return self._kept[0][0]

    def restore(self) -> None:
        """Put weights and moments back as they were before the update."""
        for (flat, optimizer), (weights, moments) in zip(self._learner.all_flat(), self._kept, strict=True):
            with torch.no_grad():
                flat.values.copy_(weights)
            optimizer.load_state(moments)


class Way(Protocol):
    """How one minibatch goes from samples to moved weights."""

    @property
    def names(self) -> list[str]:
        """Of the statistics, known after the first minibatch."""

    @property
    def inference(self) -> bool:
        """Whether nothing that happens needs autograd, not even for a small part."""

    def begin(self, batch: Batch, c: Coefficients) -> None:
        """The samples and coefficients of the coming epochs."""

    def pieces(self, order: Order) -> Iterator[Any]:
        """The minibatches of one epoch, as `learn` takes them."""

    def learn(self, piece: Any) -> tuple[Tensor, Tensor]:
        """Learn from a minibatch; return the means of its statistics and the norm of its gradient."""


class Eager:
    """Operation after operation; a bad gradient is found before it moves anything."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._observer: Observer | None = None
        self._batch: Batch
        self._c: Coefficients = {}
        self._updates = 0
        self.names: list[str] = []

    @property
    def inference(self) -> bool:
        """The hand-written path needs no autograd bookkeeping at all; everything else records its own graph."""
        return self._learner.policy.by_hand and self._learner.algorithm.in_closed_form

    def watched_by(self, observer: Observer | None) -> Eager:
        """The same with an observer."""
        self._observer = observer
        return self

    def begin(self, batch: Batch, c: Coefficients) -> None:
        """The samples and coefficients of the coming epochs."""
        self._batch, self._c, self._updates = batch, c, 0
        if self._observer is not None:
            self._observer.batch(batch, c)
        else:
            self._batch = batch.with_obs(self._learner.policy.encoder.packed(batch.obs))

    def pieces(self, order: Order) -> Iterator[Batch]:
        """One gather per field where samples are small; a second copy of a rollout of images would only take room."""
        if order.index is None:
            yield self._batch
        elif order.sequence is not None:
            for index in order.pieces():
                yield sequences(self._learner.policy, self._batch, index, order.sequence)
        elif self._learner.policy.by_hand:
            yield from self._batch.select(order.index).split(order.sizes)
        else:
            for index in order.pieces():
                yield self._batch.select(index)

    def learn(self, piece: Batch) -> tuple[Tensor, Tensor]:
        """Gradients, then a step."""
        outputs, loss = gradients(self._learner, piece, self._c)
        # Before the step: clipping scales the gradients in place.
        if self._observer is not None:
            self._observer.gradients(self._updates, piece, outputs, loss)
        self.names = list(loss.statistics)
        means = torch.stack(list(loss.statistics.values())).mean(1)
        norm = self._step()
        if self._observer is not None:
            self._observer.stepped(self._updates)
        self._updates += 1
        return means, norm

    def _step(self) -> Tensor:
        """Check, clip and apply the gradients."""
        learner, c = self._learner, self._c
        limit = c.get("max_grad_norm")
        norm = clipped(learner.flat, limit)
        for network in learner.modules:
            clipped(network.flat, limit)
        learner.optimizer.step(c["learning_rate"])
        for network in learner.modules:
            network.optimizer.step(network.rate(c))
        return norm


def sequences(policy: Policy, batch: Batch, index: Tensor, length: int) -> Batch:
    """Sequences of a rollout. With burn-in, their first states are computed anew from so many steps before them.

    The weights have moved since the states were stored. Steps before the rollout are not known any more.
    """
    minibatch = batch.select(index, sequence=length)
    steps = policy.burn_in
    if steps == 0 or batch.sequence is None:
        return minibatch
    n_envs = len(batch) // batch.sequence
    firsts = index[: len(minibatch) // length]
    known = (firsts >= steps * n_envs).nonzero().squeeze(1)
    if len(known):
        before = firsts[known] - torch.arange(steps, 0, -1, device=index.device).unsqueeze(1) * n_envs
        context = batch.select(before.flatten(), sequence=steps)
        assert context.memory is not None
        minibatch["state"][known] = policy.remembered(context.obs, context.memory)
    return minibatch


def clipped(flat: FlatParameters, limit: float | None) -> Tensor:
    """The norm of a gradient, which is scaled down to the limit; one that is not finite is an error."""
    norm = flat.norm()
    value = float(norm)  # host sync on a GPU: this way is taken there only where updates are not captured
    if not math.isfinite(value):
        raise not_finite()
    if limit is not None and value > limit:
        flat.grads.mul_(limit / (value + 1e-6))  # the constant of torch's clip_grad_norm_
    return norm


class Running:
    """All epochs over one batch. The host may do other things until `result` is asked for, where the way lets it.

    A `target_kl` makes it wait for the device after every epoch.
    """

    def __init__(self, learner: Learner, way: Way, batch: Batch, c: Coefficients) -> None:
        self._learner, self._way, self._batch, self._c = learner, way, batch, c
        self._before = Before(learner)
        self._means: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._epochs, self._stopped = 0, False
        try:
            self._run()
        except NonFiniteError as error:
            self._undo(error)
            raise

    def busy(self) -> bool:
        """Whether the device is still at it."""
        return False

    def _run(self) -> None:
        n_epochs = max(1, round(self._c.get("n_epochs", 1.0)))
        with torch.inference_mode(self._way.inference), torch.no_grad():
            self._way.begin(self._batch, self._c)
            for _ in range(n_epochs):
                first = len(self._means)
                for piece in self._way.pieces(self._order()):
                    means, norm = self._way.learn(piece)
                    self._means.append(means)
                    self._norms.append(norm)
                self._epochs += 1
                # The epoch that went too far counts: its steps are taken, and only those after it are left out.
                if self._too_far(first):
                    self._stopped = True
                    break

    def _order(self) -> Order:
        learner, n = self._learner, len(self._batch)
        size = learner.algorithm.batch_size(n)
        steps = self._batch.sequence
        if steps is None or self._batch.present is not None:
            return flat_order(n, size, learner.generator)
        length = learner.policy.sequence_length or steps
        return column_order(steps, n // steps, length, size, learner.generator)

    def _too_far(self, first: int) -> bool:
        """Whether the policy has moved too far in this epoch to go on learning from these samples."""
        names = self._way.names
        if "target_kl" not in self._c or "train/approx_kl" not in names:
            return False
        kl = torch.stack(self._means[first:])[:, names.index("train/approx_kl")].mean()
        return float(kl) > self._c["target_kl"]  # host sync: once per epoch, only when asked for

    def result(self) -> UpdateResult:
        """What it did. A gradient that was not finite leaves weights and optimizer as they were before."""
        means = torch.stack(self._means).mean(0).tolist()  # the one sync of the iteration
        norms = torch.stack(self._norms)
        norm = float(norms.mean())
        if not math.isfinite(norm):
            error = not_finite()
            self._undo(error)
            raise error
        statistics = dict(zip(self._way.names, means, strict=True))
        statistics["train/grad_norm"] = norm
        limit = self._c.get("max_grad_norm")
        if limit is not None:
            statistics["train/grad_clip_fraction"] = float((norms > limit).float().mean())
        statistics["train/loss"] = self._learner.algorithm.total_loss(statistics, self._c)
        if "train/approx_kl" not in statistics:
            learner = self._learner
            statistics["train/approx_kl"] = learner.algorithm.distance(learner.policy, self._batch)
        last_norm = float(norms[-1])
        return UpdateResult(statistics, len(self._means), self._epochs, self._stopped, self._before, last_norm)

    def _undo(self, error: NonFiniteError) -> None:
        """Put weights and moments back, and keep the batch for whoever explains the error."""
        self._before.restore()
        error.batch = self._batch


def gradients(learner: Learner, batch: Batch, c: Any) -> tuple[Outputs, Loss]:
    """Gradients of one minibatch into `flat.grads`; returns what was computed on the way, on the device."""
    learner.flat.grads.zero_()
    for network in learner.modules:
        network.flat.grads.zero_()
    outputs, tape = learner.policy.evaluate(batch.obs, batch["action"], batch.mask, batch.memory)
    loss = learner.algorithm.loss(outputs, batch, c)
    learner.policy.backprop(tape, loss.gradients)
    return outputs, loss


def update(learner: Learner, batch: Batch, c: Coefficients, observer: Observer | None = None) -> UpdateResult:
    """All epochs over one batch, now."""
    return Running(learner, Eager(learner).watched_by(observer), batch, c).result()


def not_finite() -> NonFiniteError:
    """The error for a gradient that is NaN or infinite."""
    return NonFiniteError(
        "The gradient is NaN or infinite; the weights are unchanged. Usual causes: a learning rate that is too high, "
        "rewards or observations of huge size (try policy.normalize_obs=true algo.normalize_reward=true)."
    )
