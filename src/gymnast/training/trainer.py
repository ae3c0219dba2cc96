"""What trains: the contract between an algorithm's way of learning and the loop that keeps a run.

The loop decides when to evaluate, to save and to stop. It knows nothing of rollouts, replay or actors; a trainer knows
nothing of folders, signals or tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from gymnast.algorithms.optimizer import Optimizer
from gymnast.config.plan import Plan
from gymnast.config.schedule import Clock
from gymnast.config.schema import RunConfig
from gymnast.envs.vector import VectorEnv
from gymnast.errors import CheckpointError, ConfigError
from gymnast.metrics.histogram import Histogram
from gymnast.policies import make_policy
from gymnast.policies.base import Policy
from gymnast.policies.encoders import Observation
from gymnast.rollout.returns import RewardScaler
from gymnast.runs.bulk import Growing
from gymnast.timing import StageTimer

Row = dict[str, float | None]
"""Metrics of one iteration by name; None if there is nothing to say."""


@dataclass
class Counters:
    """How far a run has come. Reset, warm-up and evaluation steps are not counted."""

    iteration: int = 0
    env_steps: int = 0
    vec_steps: int = 0
    updates: int = 0
    epochs: int = 0
    evaluations: int = 0
    kl_stops: int = 0
    seconds: float = 0.0
    """Wall time of earlier attempts."""

    def advance(self, steps: int, n_envs: int, *, updates: int = 0, epochs: int = 0) -> None:
        """An iteration of so many steps of every env has ended."""
        self.iteration += 1
        self.vec_steps += steps
        self.env_steps += steps * n_envs
        self.updates += updates
        self.epochs += epochs

    def clock(self, budget: int) -> Clock:
        """The clock of schedules over a budget of this many env steps."""
        return Clock(self.env_steps, self.vec_steps, min(1.0, self.env_steps / budget))

    def at(self, seconds: float) -> dict[str, Any]:
        """For a checkpoint that is written after so many seconds of this attempt."""
        return {**asdict(self), "seconds": self.seconds + seconds}

    @staticmethod
    def restored(saved: dict[str, Any]) -> Counters:
        """The counters as a checkpoint holds them."""
        return Counters(**{name: type(getattr(Counters, name))(value) for name, value in saved.items()})


@dataclass(frozen=True)
class About:
    """What a person should know of a trainer before it begins."""

    envs: str
    """How the envs are stepped."""
    device: torch.device
    choices: tuple[int, ...] = ()
    """How many choices each part of a discrete action has; empty for continuous actions."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why the machine is used as it is, by config key."""
    reset_every: int | None = None
    """Env steps between resets of envs whose state cannot be saved."""


@dataclass(frozen=True)
class Setup:
    """What every trainer begins with: a config with nothing left open, and envs that run, which the trainer closes."""

    config: RunConfig
    plan: Plan
    device: torch.device
    envs: VectorEnv
    reasons: dict[str, str]
    """Why the machine is used as it is, by config key."""


class Trainer(ABC):
    """Learns one iteration after another. Between two iterations it is at a boundary, which a checkpoint describes."""

    config: RunConfig
    plan: Plan
    counters: Counters
    wants_histograms = False
    """Whether anybody looks at `histograms`."""

    @classmethod
    def make_policy(
        cls,
        config: RunConfig,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        generator: torch.Generator | None = None,
    ) -> Policy:
        """The policy that it trains, not yet trained; evaluation, videos and export make it without the trainer."""
        return make_policy(config.policy, observation_space, action_space, generator=generator)

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """What is evaluated, saved and exported."""

    @property
    @abstractmethod
    def optimizer(self) -> Optimizer:
        """The optimizer of the policy's weights."""

    @property
    def reward_scaler(self) -> RewardScaler | None:
        """Statistics of rewards, which a run that begins with these weights takes over."""
        return None

    @property
    @abstractmethod
    def steps_per_iteration(self) -> int:
        """Env steps that the next iteration takes, as far as is known."""

    @property
    @abstractmethod
    def about(self) -> About:
        """For the summary before training."""

    @property
    def resumable(self) -> bool:
        """Whether a run that goes on from this boundary goes on from all there is."""
        return True

    @property
    def stands(self) -> bool:
        """Whether no env is ahead of this boundary."""
        return True

    @abstractmethod
    def start(self) -> None:
        """Begin, or go on where `load_state` has put it."""

    @abstractmethod
    def iterate(self, timer: StageTimer, on_step: Callable[[int], None] | None = None, *, drain: bool = False) -> Row:
        """Learn once; afterwards the counters are at the next boundary. Returns what it did, as metrics.

        With `drain`, nothing is ahead of that boundary. `on_step` is called with the vector steps taken.
        """

    def histograms(self) -> dict[str, Histogram]:
        """How values were spread in the last iteration, by name; they are taken once and may be empty."""
        return {}

    def concerns(self) -> list[str]:
        """What the last iteration showed about the envs, for the user; an EnvError if going on is pointless."""
        return []

    def coefficients(self) -> dict[str, float]:
        """Every number of the coming iteration that may be scheduled."""
        return {}

    def evidence(self) -> dict[str, Tensor]:
        """The data of the iteration under way, to look at when it fails."""
        return {}

    def enter_stage(self, stage: str, *, fresh_optimizer: bool = False) -> None:
        """Go on with the envs of another stage of the plan, in fresh episodes, with all that was learned."""
        raise ConfigError(f"{self.config.algo.id} cannot change its envs: use plan.by=slot or plan.by=episode.")

    @classmethod
    def changes_envs(cls) -> bool:
        """Whether it can go on with other envs."""
        return cls.enter_stage is not Trainer.enter_stage

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that a boundary consists of besides the policy's weights."""

    def bulk(self) -> Mapping[str, Growing]:
        """What is too big for `state`, by name. A checkpoint writes only what is new of it and refers to the rest.

        `load_state` does not have it yet: it is put back right afterwards.
        """
        return {}

    @abstractmethod
    def load_state(
        self, policy: dict[str, Tensor], state: dict[str, Any], counters: dict[str, Any], *, optimizer: bool = True
    ) -> None:
        """Go on exactly where `state` was taken."""

    @abstractmethod
    def close(self) -> None:
        """Close the training envs."""


def repeats(state: dict[str, Any]) -> bool:
    """Whether a run that goes on from a checkpoint's state is the same to the bit as one that was never stopped."""
    envs = state["session"].get("envs")
    return envs is None or bool(envs.get("exact", True))


MOST_SEEN = 4096
"""Observations of an iteration that move the statistics of layers: more of them say the same."""


def some_of(obs: Observation, device: torch.device) -> Observation:
    """Evenly spread ones of a batch of observations, where the policy is."""
    if isinstance(obs, dict):
        return {name: _spread(part).to(device) for name, part in obs.items()}
    return _spread(obs).to(device)


def _spread(part: Tensor) -> Tensor:
    return part[:: -(-part.shape[0] // MOST_SEEN)]


def policy_tensors(policy: Policy) -> dict[str, Tensor]:
    """Weights and normaliser statistics: what is needed to act."""
    return {name: tensor.detach() for name, tensor in policy.state_dict().items()}


def load_policy(policy: Policy, tensors: dict[str, Tensor]) -> None:
    """Copy saved tensors into a policy of the same shape; NaN and infinite weights are refused."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise CheckpointError(
                f"The weights hold NaN or infinity ('{name}'), so this policy cannot act. Use an earlier checkpoint of the "
                "run (`gymnast runs show` lists them), or train it again."
            )
    try:
        policy.load_state_dict(tensors)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:4]]
        raise ConfigError("The checkpoint does not fit this network: " + " ".join(lines)) from None
    if policy.encoder.norm is not None:
        policy.encoder.norm.refresh()
