"""The update of one minibatch as a CUDA graph: one launch instead of some hundred kernels.

The graph reads its minibatch by an index tensor from tensors that stay where they are, coefficients from 0-d tensors that
schedules fill, and writes statistics into a table that is read once per iteration. What it computes is what
`training.update` computes; capturing changes how it is launched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gymnast.algorithms.base import Coefficients
from gymnast.rollout.buffer import Batch
from gymnast.rollout.graphs import captured

if TYPE_CHECKING:
    from gymnast.training.update import Learner


class CapturedUpdate:
    """Captured minibatch updates of one learner, one graph per minibatch size."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._batch: Batch | None = None
        self._coefficients: dict[str, Tensor] = {}
        self._graphs: dict[int, _Minibatch] = {}

    def load(self, batch: Batch, c: Coefficients) -> None:
        """Take this iteration's samples and coefficients over; nothing is copied that lies where it lay before."""
        device = batch.action.device
        if self._batch is None:
            self._batch = batch.in_place()
            self._coefficients = {name: torch.tensor(value, device=device) for name, value in c.items()}
        else:
            self._batch.take(batch)
        for name, value in c.items():
            self._coefficients[name].fill_(value)

    def run(self, index: Tensor) -> Tensor:
        """Learn from the samples of `index`; the means of its statistics and the gradient norm, on the device."""
        size = len(index)
        if size not in self._graphs:
            assert self._batch is not None
            self._graphs[size] = _Minibatch(self._learner, self._batch, self._coefficients, index)
        return self._graphs[size](index)

    @property
    def names(self) -> list[str]:
        """Of the statistics that `run` gives, without the norm."""
        return next(iter(self._graphs.values())).names


class _Minibatch:
    """One graph: gather, forward, loss, backward, clip, optimizer step, statistics."""

    def __init__(self, learner: Learner, batch: Batch, c: dict[str, Tensor], index: Tensor) -> None:
        self._learner, self._batch, self._c = learner, batch, c
        self._index = index.clone()
        self._out: Tensor
        self.names: list[str] = []
        self._capture()

    def _capture(self) -> None:
        """The calls before the capture move weights and moments, which are put back."""
        flat, optimizer = self._learner.flat, self._learner.optimizer
        weights = flat.values.clone()
        moments = {name: tensor.clone() for name, tensor in optimizer.state().items()}
        self._graph = captured(self._update, "learning")
        with torch.no_grad():
            flat.values.copy_(weights)
        optimizer.load_state(moments)

    def __call__(self, index: Tensor) -> Tensor:
        """Learn from these samples."""
        self._index.copy_(index)
        self._graph.replay()
        return self._out.clone()

    def _update(self) -> None:
        from gymnast.training.update import gradients

        learner, c = self._learner, self._c
        with torch.no_grad():
            _, loss = gradients(learner, self._batch.select(self._index), c)
            self.names = list(loss.statistics)
            means = torch.stack(list(loss.statistics.values())).mean(1)
            norm = learner.flat.norm()
            if "max_grad_norm" in c:
                learner.flat.grads.mul_((c["max_grad_norm"] / (norm + 1e-6)).clamp_(max=1.0))
            learner.optimizer.step(c["learning_rate"])
            self._out = torch.cat((means, norm.unsqueeze(0)))


def can_capture(learner: Learner, batch: Batch) -> bool:
    """Whether updates of such batches may be captured: on a GPU, with fixed shapes and no dropout, which seeds its own noise."""
    if not batch.action.is_cuda or learner.algorithm.episodes_per_env is not None:
        return False
    policy = learner.policy
    chains = [chain for chain in (policy.trunk, policy.actor, policy.critic) if chain is not None]
    return not any(chain.dropout for chain in chains)
