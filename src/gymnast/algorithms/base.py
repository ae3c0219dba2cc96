"""The on-policy contract: an algorithm is its config, its targets and its loss.

A loss comes in one of two forms. `objective` is plain PyTorch: a scalar, differentiated by autograd down to the policy's
outputs. `loss` gives the derivatives by output name in closed form, which is faster; the shipped algorithms do that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from gymnast.algorithms.losses import squared_error
from gymnast.algorithms.rnd import INTRINSIC, RND
from gymnast.config.algorithms import AlgorithmConfig, OnPolicyConfig
from gymnast.config.schedule import Clock, scheduled_fields, value_at
from gymnast.config.schema import PolicyConfig
from gymnast.policies import make_policy
from gymnast.policies.base import Field, Head, Outputs, Policy
from gymnast.policies.value_scale import ValueScale
from gymnast.rollout.batch import Batch
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.returns import Floats, RewardScaler, Steps, gae

__all__ = [
    "Algorithm",
    "Batch",
    "Coefficients",
    "Field",
    "Head",
    "Loss",
    "Outputs",
    "Policy",
    "Rollout",
    "coefficients",
]

Coefficients = dict[str, float]
"""Of one iteration by name. A captured update has them as 0-d tensors on the device instead."""
C = TypeVar("C", bound=OnPolicyConfig)


def coefficients(config: AlgorithmConfig, clock: Clock) -> Coefficients:
    """Every number of an algorithm that may be scheduled, as it is at this moment; None-valued ones are left out."""
    values = {name: getattr(config, name) for name in scheduled_fields(type(config))}
    return {name: value_at(value, clock) for name, value in values.items() if value is not None}


@dataclass(slots=True)
class Loss:
    """How the mean loss of a minibatch changes with the policy's outputs, by name, and statistics [B] by catalogue name."""

    gradients: dict[str, Tensor | float]
    statistics: Outputs


class Algorithm(Generic[C]):
    """Base of all on-policy algorithms."""

    uses_critic = True
    heads: Sequence[Head] = ()
    """Outputs it asks of the policy besides actions and value."""
    episodes_per_env: int | None = None
    """Whole episodes that every slot plays per iteration; None if rollouts have a fixed number of steps."""

    def __init__(self, config: C, n_envs: int) -> None:
        self.config = config
        self.reward_scaler = RewardScaler(n_envs, config.reward_clip) if config.normalize_reward else None
        self.rnd: RND | None = None
        """What pays for what is new, where the config asks for it; made with the policy."""
        if getattr(config, "rnd", None) is not None:
            self.heads = (*self.heads, INTRINSIC)
        self._n_envs = n_envs
        self.value_scale: ValueScale | None = None
        """The unit of the policy's value head, where it has one of its own."""

    # ---- what it needs of others -----------------------------------------------------------------------------------

    def fields(self, policy: Policy) -> list[Field]:
        """What the rollout keeps for it besides what env and policy give; it fills them in `targets`."""
        return []

    def modules(self, policy: Policy) -> dict[str, nn.Module]:
        """Networks of its own, by name. They have an optimizer each, are saved and resumed, and no agent is exported with them.

        Their learning rate is the coefficient `<name>_learning_rate` where the config has it, else `learning_rate`.
        """
        if self.rnd is None:
            return {}
        return {"rnd": self.rnd}

    def make_policy(
        self,
        config: PolicyConfig,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        generator: torch.Generator | None = None,
    ) -> Policy:
        """The policy it trains: the one that the config names, with the heads it asks for."""
        policy = make_policy(
            config, observation_space, action_space, critic=self.uses_critic, heads=self.heads, generator=generator
        )
        if self.config.normalize_value != "off":
            self.value_scale = policy.scale_values(preserving=self.config.normalize_value == "popart")
        curiosity = getattr(self.config, "rnd", None)
        if curiosity is not None:
            seed = 0 if generator is None else int(torch.randint(2**31, (), generator=generator))
            self.rnd = RND(curiosity, observation_space, self._n_envs, seed)
        return policy

    def batch_size(self, samples: int) -> int:
        """Minibatch size for a rollout of `samples`."""
        return samples

    # ---- targets ---------------------------------------------------------------------------------------------------

    def targets(self, rollout: Rollout, c: Coefficients, policy: Policy) -> Batch:
        """The samples of a filled rollout with advantages, not yet normalised, and value targets."""
        t = rollout.length
        if "value" in rollout:
            value, next_value = rollout.host("value"), rollout.next["value"][:t]
        else:
            value = next_value = np.zeros((t, rollout.n_envs), np.float32)
        steps = Steps(self.rewards(rollout, c), value, next_value, rollout.terminated[:t], rollout.truncated[:t])
        advantage, target = self.estimate(steps, c)
        targets = {"target": target}
        if self.rnd is not None:
            curious, targets["intrinsic_target"] = self.rnd.targets(rollout)
            advantage = advantage + np.float32(self.rnd.config.weight) * curious
        batch = rollout.batch(advantage=advantage, **targets)
        if self.value_scale is not None:
            self.value_scale.follow(batch["target"], self.config.normalize_value_rate)
        return batch

    def explored(self, loss: Loss, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """The loss with what an intrinsic reward adds: its value head's error, and the predictor's own gradients."""
        if self.rnd is None:
            return loss
        error, derivative = squared_error(outputs[INTRINSIC.name], batch["intrinsic_target"])
        loss.gradients[INTRINSIC.name] = derivative.mul_(c["vf_coef"] / len(batch))
        loss.statistics["train/rnd_value_loss"] = error
        loss.statistics["train/rnd_loss"] = self.rnd.learn(batch.obs)
        return loss

    def in_unit(self, value: Tensor) -> Tensor:
        """A value or a target in the unit in which the critic learns."""
        if self.value_scale is None:
            return value
        return self.value_scale.normalised(value)

    def by_value(self, derivative: Tensor) -> Tensor:
        """The derivative by the value, from the one in the unit in which the critic learns."""
        if self.value_scale is None:
            return derivative
        return derivative / self.value_scale.std

    def estimate(self, steps: Steps, c: Coefficients) -> tuple[Floats, Floats]:
        """Advantages and value targets [T, N], by rewards as the learner sees them: generalised advantage estimation."""
        gamma, lam = c["gamma"], c.get("gae_lambda", 1.0)
        return gae(steps.reward, steps.value, steps.next_value, steps.terminated, steps.truncated, gamma, lam)

    def scaled(self, reward: Floats) -> Floats:
        """Rewards [T, N] as the learner sees them now; nothing is learned from them."""
        if self.reward_scaler is None:
            return reward
        return self.reward_scaler.scaled(reward)

    def advantages(self, steps: Steps, c: Coefficients) -> Floats:
        """Advantages [T, N] of episodes outside training, by the reward scale of the last batch; nothing changes."""
        return self.estimate(replace(steps, reward=self.scaled(steps.reward)), c)[0]

    def weighted(self, batch: Batch) -> Batch:
        """The batch with its advantages as the loss weighs samples by them: normalised, where that is asked for."""
        return batch

    # ---- loss ------------------------------------------------------------------------------------------------------

    def loss(self, outputs: Outputs, batch: Batch, c: Coefficients) -> Loss:
        """Derivatives of the mean loss by the policy's outputs: by autograd from `objective`, unless written out here."""
        with torch.enable_grad():
            leaves = {name: tensor.detach().requires_grad_() for name, tensor in outputs.items()}
            scalar, statistics = self.objective(leaves, batch, c)
            scalar.backward()  # also into the algorithm's own networks
        gradients: dict[str, Tensor | float] = {
            name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None
        }
        named = {"train/entropy": outputs["entropy"], "train/loss": scalar, **statistics}
        return Loss(gradients, {name: value.detach().expand(len(batch)) for name, value in named.items()})

    def objective(self, outputs: Outputs, batch: Batch, c: Coefficients) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The mean loss of a minibatch as a scalar, in plain PyTorch, and statistics (scalars or [B]) by metric name."""
        raise NotImplementedError(f"{type(self).__name__} has neither a `loss` nor an `objective`.")

    @property
    def in_closed_form(self) -> bool:
        """Whether the loss needs no autograd."""
        return type(self).loss is not Algorithm.loss and self.rnd is None

    def total_loss(self, statistics: Mapping[str, float], c: Coefficients) -> float:
        """The loss that was minimised, from the means of its parts."""
        if "train/loss" in statistics:
            return statistics["train/loss"]
        total = statistics["train/policy_loss"] - c.get("ent_coef", 0.0) * statistics["train/entropy"]
        return total + c.get("vf_coef", 0.0) * statistics.get("train/value_loss", 0.0)

    # ---- metrics ---------------------------------------------------------------------------------------------------

    def expected(self, batch: Batch) -> Tensor | None:
        """What the critic predicted for these samples during collection; None without a critic."""
        if "value" not in batch:
            return None
        return batch["value"]

    def measures(self, batch: Batch) -> dict[str, float | None]:
        """The critic's mean, and how much of the targets' variance it explains; empty without a critic."""
        novelty = {} if self.rnd is None else {"rollout/intrinsic_reward": self.rnd.reward_mean}
        value = self.expected(batch)
        if value is None:
            return {"train/explained_variance": None, "train/value_mean": None, **novelty}
        target = batch["target"]
        value = value.to(target.device)  # host sync: on a GPU the rollout is there, and targets are on the host
        spread = 0.0
        if len(batch) > 1:
            spread = float(target.var())
        explained = None
        if spread > 0:
            explained = 1.0 - float((target - value).var()) / spread
        return {"train/explained_variance": explained, "train/value_mean": float(value.mean()), **novelty}

    def distance(self, policy: Policy, batch: Batch) -> float:
        """How far the policy has moved from the one that collected the batch: the k3 estimate of their KL divergence.

        It takes a pass over the whole batch, for losses whose statistics do not have it anyway.
        """
        with torch.no_grad():
            log_ratio = policy.log_prob(batch.obs, batch["action"], batch.mask, batch.memory) - batch["log_prob"]
            return float((log_ratio.exp() - 1.0 - log_ratio).mean())

    # ---- rewards and state -----------------------------------------------------------------------------------------

    def rewards(self, rollout: Rollout, c: Coefficients) -> np.ndarray:
        """Rewards [T, N] as the learner sees them."""
        reward = rollout.reward[: rollout.length]
        if self.reward_scaler is None:
            return reward
        if self.episodes_per_env is not None:
            self.reward_scaler.start_episodes()
        ended = rollout.terminated[: rollout.length] | rollout.truncated[: rollout.length]
        return self.reward_scaler(reward, ended, c["gamma"])

    def state(self) -> dict[str, Any]:
        """State for the checkpoint."""
        saved: dict[str, Any] = {}
        if self.reward_scaler is not None:
            saved["reward_scaler"] = self.reward_scaler.state()
        if self.rnd is not None:
            saved["rnd"] = self.rnd.state()
        return saved

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned, to the bit."""
        if self.reward_scaler is not None:
            self.reward_scaler.load_state(state["reward_scaler"])
        if self.rnd is not None:
            self.rnd.load_state(state["rnd"])
