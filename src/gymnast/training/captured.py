"""The update of one minibatch as a CUDA graph: one launch instead of some hundred kernels.

The graph reads its minibatch by an index tensor from tensors that stay where they are, coefficients from 0-d tensors that
schedules fill, and writes statistics into a table that is read once per iteration. What it computes is what
`training.update` computes; capturing changes how it is launched.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gymnast.algorithms.base import Coefficients
from gymnast.rollout.batch import Batch, Order
from gymnast.rollout.graphs import captured
from gymnast.training.update import Before, Learner, Running, UpdateResult, gradients


class Captured:
    """Captured minibatch updates of one learner for samples that lie in one place; one graph per minibatch size."""

    inference = False

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._batch: Batch | None = None
        self._coefficients: dict[str, Tensor] = {}
        self._graphs: dict[int, _Minibatch] = {}

    def begin(self, batch: Batch, c: Coefficients) -> None:
        """Take this iteration's samples and coefficients over; nothing is copied that lies where it lay before."""
        device = batch["action"].device
        if self._batch is None:
            self._batch = batch.in_place()
            self._coefficients = {name: torch.tensor(value, device=device) for name, value in c.items()}
        else:
            self._batch.take(batch)
        for name, value in c.items():
            self._coefficients[name].fill_(value)

    def pieces(self, order: Order) -> Iterator[Tensor]:
        """The indices of each minibatch."""
        if order.index is None:
            yield torch.arange(order.sizes[0], device=self._learner.generator.device)
        else:
            yield from order.pieces()

    def learn(self, piece: Tensor) -> tuple[Tensor, Tensor]:
        """Learn from the samples of an index; the means of its statistics and the gradient norm, on the device."""
        size = len(piece)
        if size not in self._graphs:
            assert self._batch is not None
            self._graphs[size] = _Minibatch(self._learner, self._batch, self._coefficients, piece)
        row = self._graphs[size](piece)
        return row[:-1], row[-1]

    @property
    def names(self) -> list[str]:
        """Of the statistics that `learn` gives."""
        return next(iter(self._graphs.values())).names


class _Minibatch:
    """One graph: gather, forward, loss, backward, clip, optimizer step, statistics."""

    def __init__(self, learner: Learner, batch: Batch, c: dict[str, Tensor], index: Tensor) -> None:
        self._learner, self._batch, self._c = learner, batch, c
        self._index = index.clone()
        self._out: Tensor
        self.names: list[str] = []
        before = Before(learner)  # the calls before the capture move weights and moments
        self._graph = captured(self._update, "learning")
        before.restore()

    def __call__(self, index: Tensor) -> Tensor:
        """Learn from these samples."""
        self._index.copy_(index)
        self._graph.replay()
        return self._out.clone()

    def _update(self) -> None:
        learner, c = self._learner, self._c
        with torch.no_grad():
            _, loss = gradients(learner, self._batch.select(self._index), c)
            self.names = list(loss.statistics)
            means = torch.stack(list(loss.statistics.values())).mean(1)
            norm = learner.flat.norm()
            if "max_grad_norm" in c:
                # Without a look from the host; what was not finite is found when the statistics are read.
                learner.flat.grads.mul_((c["max_grad_norm"] / (norm + 1e-6)).clamp_(max=1.0))
            learner.optimizer.step(c["learning_rate"])
            self._out = torch.cat((means, norm.unsqueeze(0)))


class Launched(Running):
    """All epochs by captured graphs, launched at once on a stream of their own: acting goes on meanwhile."""

    def __init__(
        self, learner: Learner, way: Captured, batch: Batch, c: Coefficients, stream: torch.cuda.Stream
    ) -> None:
        self._stream = stream
        self._done = torch.cuda.Event()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            super().__init__(learner, way, batch, c)
            self._done.record()

    def busy(self) -> bool:
        """Whether the GPU is still at it."""
        return not self._done.query()

    def result(self) -> UpdateResult:
        """What it did; waits for it."""
        torch.cuda.current_stream().wait_stream(self._stream)
        return super().result()


def can_capture(learner: Learner, batch: Batch) -> bool:
    """Whether updates of such batches may be captured: on a GPU, with fixed shapes, and with nothing that seeds its own noise."""
    if not batch["action"].is_cuda or learner.algorithm.episodes_per_env is not None:
        return False
    if batch.sequence is not None or learner.modules or not learner.algorithm.in_closed_form:
        return False
    return not learner.policy.draws
