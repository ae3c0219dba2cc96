"""Deep Q-learning (Mnih et al. 2015; "double" after van Hasselt et al. 2016): values of actions, learned from a replay.

What is off-policy about it is the base class's: envs, replay, boundaries. What keeps a run is gymnast's: checkpoints, exact
resume, signals, evaluation, metrics, video and export know nothing of it but that it is a trainer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
import torch.nn.functional as F
from gymnasium import spaces
from pydantic import PositiveInt
from torch import Tensor

from gymnast.algorithms.base import Batch, Coefficients, Policy
from gymnast.config.algorithms.base import OffPolicyConfig, Rate, Share
from gymnast.config.schedule import Piecewise
from gymnast.config.schema import RunConfig
from gymnast.errors import ConfigError
from gymnast.policies import make_policy
from gymnast.timing import StageTimer
from gymnast.training.off_policy import OffPolicyTrainer
from gymnast.training.trainer import Row, Setup, load_policy, policy_tensors


class Config(OffPolicyConfig):
    """What `algo:` of a config may hold, besides what all off-policy algorithms have."""

    id: Literal["dqn_example"]
    learning_rate: Rate = 1e-3
    max_grad_norm: Rate | None = 10.0
    n_steps: PositiveInt = 4
    target_every: PositiveInt = 12
    """Rounds of updates after which the target network takes the weights over."""
    exploration: Share = Piecewise(schedule="piecewise", points=[(0.0, 1.0), (0.2, 0.04)], interpolate="linear")
    """Share of random actions."""


class Trainer(OffPolicyTrainer):
    """Takes the best action or a random one, and learns what the best one is worth."""

    algo: Config

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if not isinstance(self.envs.action_space, spaces.Discrete):
            raise ConfigError(f"dqn_example needs one choice of action, not {self.envs.action_space}: use ppo.")
        spaces_of = (self.envs.observation_space, self.envs.action_space)
        self._target = self.make_policy(self.config, *spaces_of).to(setup.device)

    @classmethod
    def make_policy(
        cls,
        config: RunConfig,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        generator: torch.Generator | None = None,
    ) -> Policy:
        """Its logits are the values of the actions, so the most likely action is the best one."""
        return make_policy(config.policy, observation_space, action_space, critic=False, generator=generator)

    def act(self, obs: Tensor, c: Coefficients) -> Tensor:
        """The best action, or with the probability `exploration` any."""
        best = self.policy.act(obs, None)["action"].cpu()
        anything = torch.randint(self.policy.distribution.n_params, best.shape, generator=self.random)
        return torch.where(torch.rand(best.shape, generator=self.random) < c["exploration"], anything, best)

    def iterate(self, timer: StageTimer, on_step: Callable[[int], None] | None = None, *, drain: bool = False) -> Row:
        """One round; now and then the target network takes the weights over."""
        if self.counters.iteration % self.algo.target_every == 0:
            load_policy(self._target, policy_tensors(self.policy))
        return super().iterate(timer, on_step, drain=drain)

    def learn(self, batch: Batch, c: Coefficients) -> Mapping[str, Tensor]:
        """Towards r + γ·Q̂(s′, argmax Q(s′, ·)), where Q̂ is the target network; a terminated episode has no future."""
        with torch.no_grad():
            best = self.policy(batch["next_obs"])[0].argmax(-1)
            future = _of(self._target(batch["next_obs"])[0], best) * ~batch["terminated"]
        chosen = _of(self.policy(batch.obs)[0], batch["action"])
        loss = F.smooth_l1_loss(chosen, batch["reward"] + c["gamma"] * future)
        self.descend(loss, c)
        return {"train/loss": loss.detach(), "train/value_mean": chosen.detach().mean()}

    def state(self) -> dict[str, Any]:
        """The target network too."""
        return {**super().state(), "target": policy_tensors(self._target)}

    def load_state(
        self, policy: dict[str, Tensor], state: dict[str, Any], counters: dict[str, Any], *, optimizer: bool = True
    ) -> None:
        """Go on exactly where `state` was taken."""
        super().load_state(policy, state, counters, optimizer=optimizer)
        load_policy(self._target, state["target"])


def _of(values: Tensor, action: Tensor) -> Tensor:
    """The values [B] of the actions taken, out of those of all actions [B, A]."""
    return values.gather(-1, action.unsqueeze(-1)).squeeze(-1)
