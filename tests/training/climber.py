"""A way to train that is none of ours: hill climbing, which has no rollout, no gradient and no critic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from gymnasium import spaces
from torch import Tensor

from gymnast import seeding
from gymnast.algorithms.optimizer import Optimizer, make_optimizer
from gymnast.config.algorithms import AlgorithmConfig
from gymnast.config.schema import RunConfig
from gymnast.envs.vector import StepRow
from gymnast.evaluation.evaluate import tensors
from gymnast.metrics.history import EpisodeWindow
from gymnast.policies import make_policy
from gymnast.policies.base import Policy
from gymnast.policies.flat import FlatParameters
from gymnast.timing import StageTimer
from gymnast.training.trainer import About, Counters, Row, Setup, load_policy
from gymnast.training.trainer import Trainer as Base


class Config(AlgorithmConfig):
    """What `algo: {id: climb}` may say."""

    id: Literal["climb"]
    n_steps: int = 16


class Trainer(Base):
    """Shakes the weights, and keeps them where no more episodes end within the same number of steps."""

    def __init__(self, setup: Setup) -> None:
        config = setup.config
        self.config, self.plan, self.envs, self.counters = config, setup.plan, setup.envs, Counters()
        self.net = self.make_policy(config, self.envs.observation_space, self.envs.action_space)
        self.flat = FlatParameters(self.net)
        self.unused = make_optimizer(self.flat, config.algo.optimizer)
        self.noise = torch.Generator().manual_seed(seeding.integer(config.train.seed, "actions"))
        self.window = EpisodeWindow(config.log.window)
        self.row: StepRow = self.envs.new_row()
        self.best = -math.inf
        self.restored = self.closed = False

    @classmethod
    def make_policy(
        cls,
        config: RunConfig,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        generator: torch.Generator | None = None,
    ) -> Policy:
        """An actor without a critic."""
        return make_policy(config.policy, observation_space, action_space, critic=False, generator=generator)

    @property
    def policy(self) -> Policy:
        """The newest weights."""
        return self.net

    @property
    def optimizer(self) -> Optimizer:
        """There is one, and it does nothing."""
        return self.unused

    @property
    def steps_per_iteration(self) -> int:
        """Always as many."""
        return int(self.plan.n_steps * self.plan.n_envs)

    @property
    def about(self) -> About:
        """As little as can be said."""
        return About(self.envs.describe(), torch.device("cpu"))

    def start(self) -> None:
        """Fresh episodes in a new run."""
        if not self.restored:
            self.envs.reset(seeding.env_seeds(self.config.train.seed, "train_envs", self.plan.n_envs), self.row)

    def iterate(self, timer: StageTimer, on_step: Callable[[int], None] | None = None, *, drain: bool = False) -> Row:
        """Shake, play on, keep or go back."""
        before = self.flat.values.clone()
        with torch.no_grad():
            self.flat.values.add_(
                torch.randn(before.shape, generator=self.noise), alpha=self.coefficients()["learning_rate"]
            )
        with timer.stage("env"):
            score = -float(sum(self._step() for _ in range(self.plan.n_steps)))
        better = score >= self.best
        if better:
            self.best = score
        else:
            with torch.no_grad():
                self.flat.values.copy_(before)
        self.counters.iteration += 1
        self.counters.vec_steps += self.plan.n_steps
        self.counters.env_steps += self.steps_per_iteration
        self.counters.updates += better
        return {**self.window.statistics(), "climb/best": self.best, "climb/kept": float(better)}

    def _step(self) -> int:
        with torch.inference_mode():
            action = self.net.act(tensors(self.row.obs), None)["action"].numpy()
        ended = self.envs.step(action, self.row)
        for episode in ended:
            self.window.add(episode.ret, episode.length)
        return len(ended)

    def coefficients(self) -> dict[str, float]:
        """How much the weights are shaken."""
        return {"learning_rate": float(self.config.algo.learning_rate)}  # type: ignore[arg-type]

    def state(self) -> dict[str, Any]:
        """Everything."""
        return {
            "noise": self.noise.get_state(),
            "best": self.best,
            "window": self.window.state(),
            "obs": self.row.obs.copy(),
            "envs": {"how": self.envs.exact_resume, "exact": True, "state": self.envs.save_state()},
        }

    def load_state(
        self, policy: dict[str, Tensor], state: dict[str, Any], counters: dict[str, Any], *, optimizer: bool = True
    ) -> None:
        """All of it back."""
        load_policy(self.net, policy)
        self.noise.set_state(state["noise"])
        self.best = float(state["best"])
        self.window.load(state["window"])
        self.row.obs[...] = state["obs"]
        self.envs.load_state(state["envs"]["state"])
        self.counters = Counters.restored(counters)
        self.restored = True

    def close(self) -> None:
        """The envs."""
        self.closed = True
        self.envs.close()
