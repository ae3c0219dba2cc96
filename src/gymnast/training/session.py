"""Everything one run works with, built once: envs, policy, algorithm, optimizer, rollout, generators."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gymnast import seeding
from gymnast.algorithms.base import Algorithm, Coefficients
from gymnast.algorithms.optimizer import Optimizer
from gymnast.config.plan import Plan
from gymnast.config.schedule import Clock, Constant, Cosine, Exponential, Linear, Piecewise, segments, value_at
from gymnast.config.schema import RunConfig
from gymnast.envs.actions import random_actions
from gymnast.envs.vector import VectorEnv
from gymnast.errors import ConfigError, NonFiniteError
from gymnast.evaluation.evaluate import tensors
from gymnast.metrics.history import EpisodeWindow
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.buffer import Rollout
from gymnast.rollout.device_collect import DeviceCollector
from gymnast.training.captured import CapturedUpdate
from gymnast.training.update import Learner

SCHEDULES = (Constant, Linear, Cosine, Exponential, Piecewise)


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


@dataclass
class Session:
    """The moving parts of one run."""

    config: RunConfig
    plan: Plan
    device: torch.device
    envs: VectorEnv
    policy: ActorCritic
    flat: FlatParameters
    algorithm: Algorithm
    optimizer: Optimizer
    rollout: Rollout
    action_generator: torch.Generator
    batch_generator: torch.Generator
    window: EpisodeWindow
    counters: Counters = field(default_factory=Counters)
    jump_segments: dict[str, int] = field(default_factory=dict)
    reset_every: int | None = None
    """Iterations between resets of envs whose state cannot be saved; None where it can, or where every iteration resets."""
    collector: DeviceCollector | None = None
    """What fills a rollout that lives on a GPU."""
    captured: dict[int, CapturedUpdate] = field(default_factory=dict)
    acting: FlatParameters | None = None
    """The weights that act where they are a copy of those that learn."""
    runs_on: bool = False
    """Whether lanes may go on into the next rollout before this iteration has ended."""
    loading: threading.Thread | None = None
    """Loads the GPU's libraries while the envs start."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why the machine is used as it is, by config key."""
    _stream: torch.cuda.Stream | None = None
    restored: bool = False
    afresh: bool = True
    """Whether the coming collection starts with fresh episodes: in a new run, and where no env states were restored."""

    @property
    def learner(self) -> Learner:
        """What an update works with."""
        return Learner(self.policy, self.flat, self.optimizer, self.algorithm, self.batch_generator, self.captured)

    def publish(self) -> None:
        """Give the weights to the copy that acts, where there is one."""
        if self.acting is None or self.collector is None:
            return
        self.acting.values.copy_(self.flat.values)
        for theirs, ours in zip(self.collector.policy.buffers(), self.policy.buffers(), strict=True):
            theirs.copy_(ours)

    def learner_stream(self) -> torch.cuda.Stream:
        """Where updates run beside acting."""
        if self._stream is None:
            self._stream = torch.cuda.Stream()
        return self._stream

    def clock(self) -> Clock:
        """Where the schedules stand."""
        done = self.counters.env_steps
        return Clock(done, self.counters.vec_steps, min(1.0, done / self.plan.env_steps))

    def coefficients(self) -> Coefficients:
        """Every scheduled hyperparameter's value for the coming iteration; None-valued ones are left out."""
        clock = self.clock()
        values = dict(self.config.algo)
        now = segments(values, clock)
        if self.jump_segments and now != self.jump_segments:
            self.optimizer.reset()
        self.jump_segments = now
        return {k: value_at(v, clock) for k, v in values.items() if isinstance(v, (float, *SCHEDULES))}

    def seed_layers(self) -> None:
        """Dropout draws from torch's global generator: seed it per iteration, so that a resumed run draws the same."""
        if self.config.policy.dropout:
            turn = np.random.SeedSequence([self.config.train.seed, self.counters.iteration])
            torch.manual_seed(int(turn.generate_state(1)[0]))

    @property
    def resets_here(self) -> bool:
        """Whether the envs are reset at this boundary because their state cannot be saved."""
        return self.reset_every is not None and self.counters.iteration % self.reset_every == 0

    @property
    def resumable(self) -> bool:
        """Whether a run that goes on from this boundary goes on from all there is: no lane of envs is ahead of it."""
        if self.ahead:
            return False
        return self.reset_every is None or self.resets_here or self.counters.env_steps >= self.plan.env_steps

    def start_episodes(self) -> None:
        """Fresh episodes in every slot: the first collection, each one of whole episodes, and where envs are reset.

        The episodes under way are cut off. Their last steps were bootstrapped from their true observations, as at the end of
        every rollout; no episode has ended, so the statistics do not hear of them.
        """
        if self.algorithm.reward_scaler is not None:
            self.algorithm.reward_scaler.start_episodes()
        seeds = seeding.env_seeds(self.config.train.seed, "train_envs", self.plan.n_envs, turn=self.counters.iteration)
        self.envs.reset(seeds, self.rollout.first_row)

    def state(self) -> dict[str, Any]:
        """The checkpoint's state tree. Describes an iteration boundary."""
        whole_episodes = self.algorithm.episodes_per_env is not None
        return {
            "optimizer": self.optimizer.state(),
            "algorithm": self.algorithm.state(),
            "generators": {"actions": self.action_generator.get_state(), "batches": self.batch_generator.get_state()},
            "window": self.window.state(),
            "jumps": dict(self.jump_segments),
            # Envs of whole-episode algorithms start afresh each iteration: there is nothing to carry.
            "envs": None if whole_episodes else self._env_state(),
            "rollout": None if whole_episodes or self.reset_every is not None or self.ahead else self.rollout.state(),
        }

    @property
    def ahead(self) -> bool:
        """Whether lanes of envs are already in the next rollout."""
        return self.collector is not None and not self.collector.drained

    def _env_state(self) -> dict[str, Any]:
        if self.reset_every is None and not self.ahead:
            return {"how": self.envs.exact_resume, "exact": True, "state": self.envs.save_state()}
        return {"how": "boundary_reset", "exact": self.resumable, "state": None}

    def load_state(
        self,
        policy: dict[str, torch.Tensor],
        state: dict[str, Any],
        counters: dict[str, Any],
        *,
        optimizer: bool = True,
    ) -> None:
        """Continue exactly where `state` was taken."""
        load_policy(self.policy, policy)
        if optimizer:
            self.optimizer.load_state(state["optimizer"])
        self.algorithm.load_state(state["algorithm"])
        self.action_generator.set_state(state["generators"]["actions"])
        self.batch_generator.set_state(state["generators"]["batches"])
        self.window.load(state["window"])
        self.jump_segments = dict(state["jumps"])
        self.counters = Counters(**counters)
        self.restored = True
        self.afresh = self.reset_every is not None or state["rollout"] is None
        if not self.afresh:
            self.envs.load_state(state["envs"]["state"])
            self.rollout.load_state(state["rollout"])


def repeats(state: dict[str, Any]) -> bool:
    """Whether a run that goes on from a checkpoint's state is the same to the bit as one that was never stopped."""
    envs = state["session"]["envs"]
    return envs is None or bool(envs.get("exact", True))


def policy_tensors(policy: ActorCritic) -> dict[str, torch.Tensor]:
    """Weights and normaliser statistics: what is needed to act."""
    return {name: tensor.detach() for name, tensor in policy.state_dict().items()}


def load_policy(policy: ActorCritic, tensors: dict[str, torch.Tensor]) -> None:
    """Copy saved tensors into a policy of the same shape."""
    try:
        policy.load_state_dict(tensors)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:4]]
        raise ConfigError("The checkpoint does not fit this network: " + " ".join(lines)) from None
    if policy.encoder.norm is not None:
        policy.encoder.norm.refresh()


def warm_up_normaliser(session: Session, steps: int = 128) -> None:
    """Seed the observation statistics with random actions, so that the first rollout is not read unnormalised."""
    norm = session.policy.encoder.norm
    if norm is None or norm.count > 0:  # there already: they came with the weights of another run
        return
    envs = session.envs
    random = np.random.default_rng(seeding.sequence(session.config.train.seed, "warmup"))
    row = envs.new_row()
    envs.reset(seeding.env_seeds(session.config.train.seed, "warmup", envs.n_envs), row)
    seen: list[torch.Tensor] = []
    for _ in range(min(steps, session.rollout.n_steps)):
        seen.append(session.policy.encoder.flat(tensors(row.obs)).clone())
        envs.step(random_actions(envs.action_space, envs.n_envs, random, row.mask), row)
    samples = torch.cat(seen)
    if not torch.isfinite(samples).all():
        step, env = divmod(int((~torch.isfinite(samples)).any(1).nonzero()[0]), envs.n_envs)
        raise NonFiniteError(
            f"The environment returned NaN or infinity (observation) in env {env}, step {step} of the random steps "
            "that warm up the observation statistics."
        )
    norm.update(samples.to(session.device))
