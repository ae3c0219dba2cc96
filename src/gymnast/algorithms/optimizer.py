"""Adam and RMSprop on one flat tensor.

Constructing any `torch.optim` optimizer imports torch's compiler (1.2 s on a laptop, 5 s on a GPU machine);
these few lines call the same fused kernel and are tested equal to torch's.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from gymnast.config.algorithms import OptimizerConfig
from gymnast.policies.flat import FlatParameters


class Optimizer(Protocol):
    """What the update needs."""

    def step(self, learning_rate: float | Tensor) -> None:
        """Move the parameters against their gradients; a captured update has the rate as a tensor."""

    def reset(self) -> None:
        """Forget all moments, as if no step had been taken."""

    def state(self) -> dict[str, Any]:
        """Tensors for the checkpoint."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned, to the bit."""


class Adam:
    """Kingma & Ba 2015, as torch.optim.Adam(fused=True)."""

    def __init__(self, flat: FlatParameters, config: OptimizerConfig) -> None:
        self._flat, self._config = flat, config
        self._mean = torch.zeros_like(flat.values)
        self._square = torch.zeros_like(flat.values)
        self._step = torch.zeros((), device=flat.values.device)
        self._rate = torch.zeros((), device=flat.values.device)

    def step(self, learning_rate: float | Tensor) -> None:
        """One fused kernel over all parameters."""
        self._step += 1
        self._rate.fill_(learning_rate)
        torch._fused_adam_(
            [self._flat.values],
            [self._flat.grads],
            [self._mean],
            [self._square],
            [],
            [self._step],
            lr=self._rate,
            beta1=self._config.betas[0],
            beta2=self._config.betas[1],
            weight_decay=self._config.weight_decay,
            eps=self._config.eps,
            amsgrad=False,
            maximize=False,
            grad_scale=None,
            found_inf=None,
        )

    def reset(self) -> None:
        """Forget both moments and the number of steps."""
        for tensor in (self._mean, self._square, self._step):
            tensor.zero_()

    def state(self) -> dict[str, Any]:
        """Moments and step count."""
        return {"mean": self._mean, "square": self._square, "step": self._step}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore both moments and the number of steps, to the bit."""
        for mine, name in ((self._mean, "mean"), (self._square, "square"), (self._step, "step")):
            mine.copy_(state[name])


class RMSprop:
    """RMSprop as TensorFlow has it, which A2C was tuned with: squares start at one, eps inside the root.

    `rmsprop_torch` is torch's, as in Stable-Baselines3: squares start at zero, eps outside.
    """

    def __init__(self, flat: FlatParameters, config: OptimizerConfig) -> None:
        self._flat, self._config = flat, config
        self._start = 0.0 if config.id == "rmsprop_torch" else 1.0
        self._square = torch.full_like(flat.values, self._start)

    def step(self, learning_rate: float | Tensor) -> None:
        """A handful of operations over all parameters."""
        values, grads, config = self._flat.values, self._flat.grads, self._config
        if config.weight_decay:
            grads.add_(values, alpha=config.weight_decay)
        self._square.mul_(config.alpha).addcmul_(grads, grads, value=1.0 - config.alpha)
        root: Tensor
        if config.id == "rmsprop_torch":
            root = self._square.sqrt().add_(config.eps)
        else:
            root = (self._square + config.eps).sqrt_()
        if isinstance(learning_rate, Tensor):
            values.sub_(grads.div(root).mul_(learning_rate))
        else:
            values.addcdiv_(grads, root, value=-learning_rate)

    def reset(self) -> None:
        """Forget the running squares: they begin at their start value again."""
        self._square.fill_(self._start)

    def state(self) -> dict[str, Any]:
        """The running mean of squared gradients."""
        return {"square": self._square}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the running squares, to the bit."""
        self._square.copy_(state["square"])


def make_optimizer(flat: FlatParameters, config: OptimizerConfig) -> Optimizer:
    """The optimizer a config names."""
    if config.id == "adam":
        return Adam(flat, config)
    return RMSprop(flat, config)
