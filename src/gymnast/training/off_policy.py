"""Off-policy training: act, keep what happened in a replay, and learn from random transitions of it.

An algorithm gives `act` and `learn`; envs, replay, metrics and boundaries are written once here.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gymnast import seeding
from gymnast.algorithms.base import Coefficients, coefficients
from gymnast.algorithms.optimizer import Optimizer, make_optimizer
from gymnast.config.algorithms.base import OffPolicyConfig
from gymnast.config.tasks import reward_terms
from gymnast.envs.actions import choices_of
from gymnast.envs.rewards.vector import TERMS
from gymnast.envs.spaces import stack
from gymnast.errors import ConfigError, NonFiniteError
from gymnast.evaluation.evaluate import regret_of, success_of, task_of
from gymnast.metrics.history import EpisodeWindow
from gymnast.policies.base import Field, Policy
from gymnast.policies.flat import FlatParameters
from gymnast.rollout.batch import Batch
from gymnast.rollout.replay import Replay
from gymnast.timing import StageTimer
from gymnast.training.trainer import About, Counters, Row, Setup, Trainer, load_policy, some_of
from gymnast.training.update import clipped


class OffPolicyTrainer(Trainer):
    """Envs, policy, optimizer and replay of a run that learns from transitions."""

    algo: OffPolicyConfig

    def __init__(self, setup: Setup) -> None:
        self.config, self.plan, self.envs, self.counters = setup.config, setup.plan, setup.envs, Counters()
        self.setup, self.algo = setup, setup.config.algo  # type: ignore[assignment]  # a subclass says which
        space, actions = self.envs.observation_space, self.envs.action_space
        if isinstance(space, spaces.Dict) or self.envs.has_action_mask:
            raise ConfigError(f"{self.algo.id} needs an observation without parts, and no action masks.")
        seed = self.config.train.seed
        init = torch.Generator().manual_seed(seeding.integer(seed, "policy_init"))
        self._policy = self.make_policy(self.config, space, actions, generator=init).to(setup.device)
        if self._policy.state_shape is not None:
            raise ConfigError(f"{self.algo.id} learns from single transitions: the policy can have no memory.")
        self.flat = FlatParameters(self._policy)
        self._optimizer = make_optimizer(self.flat, self.algo.optimizer)
        self.random = torch.Generator().manual_seed(seeding.integer(seed, "actions"))
        """What exploration and minibatches are drawn from; on the host."""
        self._row = self.envs.new_row()
        self._obs: np.ndarray = self._row.obs  # type: ignore[assignment]  # without parts: an array
        self.replay = Replay(self.algo.replay_size, self._fields())
        self._window = EpisodeWindow(self.config.log.window, reward_terms(self.config))
        self._begins = True

    def _fields(self) -> list[Field]:
        seen, choice = torch.from_numpy(self._obs), self._policy.distribution
        shape = tuple(seen.shape[1:])
        return [
            Field("obs", shape, seen.dtype),
            Field("action", choice.action_shape, choice.action_dtype),
            Field("reward"),
            Field("next_obs", shape, seen.dtype),
            Field("terminated", dtype=torch.bool),
        ]

    # ---- the algorithm's part --------------------------------------------------------------------------------------

    @abstractmethod
    def act(self, obs: Tensor, c: Coefficients) -> Tensor:
        """Actions for all envs, with exploration drawn from `random`."""

    @abstractmethod
    def learn(self, batch: Batch, c: Coefficients) -> Mapping[str, Tensor]:
        """Learn from a minibatch; returns scalars by metric name."""

    def descend(self, loss: Tensor, c: Coefficients) -> None:
        """One step of the policy's optimizer down the gradient of a scalar."""
        self.flat.grads.zero_()
        loss.backward()
        clipped(self.flat, c.get("max_grad_norm"))
        self._optimizer.step(c["learning_rate"])

    # ---- its parts -------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """What is evaluated, saved and exported."""
        return self._policy

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of the policy's weights."""
        return self._optimizer

    @property
    def steps_per_iteration(self) -> int:
        """Env steps between two rounds of updates."""
        return self.plan.n_steps * self.plan.n_envs

    @property
    def about(self) -> About:
        """For the summary before training."""
        choices = choices_of(self.envs.action_space)
        return About(self.envs.describe(), self.setup.device, choices, self.setup.reasons)

    def coefficients(self) -> Coefficients:
        """Every number of the coming iteration that may be scheduled."""
        return coefficients(self.algo, self.counters.clock(self.plan.env_steps))

    # ---- one iteration ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin fresh episodes, unless those of a checkpoint go on."""
        if self._begins:
            turn, seed = self.counters.iteration, self.config.train.seed
            self.envs.reset(seeding.env_seeds(seed, "train_envs", self.plan.n_envs, turn=turn), self._row)

    def iterate(self, timer: StageTimer, on_step: Callable[[int], None] | None = None, *, drain: bool = False) -> Row:
        """Step every env `n_steps` times, then learn from `updates` minibatches."""
        c = self.coefficients()
        reward = sum(self._step(c, timer) for _ in range(self.plan.n_steps)) / self.plan.n_steps
        self._update_normaliser()
        found: list[Mapping[str, Tensor]] = []
        with timer.stage("learn"):
            if len(self.replay) >= self.algo.learning_starts:
                found = [self._learn(c) for _ in range(self.algo.updates)]
        self.counters.advance(self.plan.n_steps, self.plan.n_envs, updates=len(found))
        row: Row = {**self._window.statistics(), "rollout/reward_mean": reward, **self.envs.counters()}
        row |= {f"train/{name}": value for name, value in c.items()}
        names = found[0] if found else ()
        for name in names:
            row[name] = float(torch.stack([one[name] for one in found]).mean())
        return {**row, "train/replay": float(len(self.replay))}

    def _step(self, c: Coefficients, timer: StageTimer) -> float:
        """One step of every env; returns the mean reward."""
        row, device, began = self._row, self.setup.device, time.perf_counter()
        obs = torch.from_numpy(self._obs).clone()
        with torch.no_grad():
            action = self.act(obs.to(device), c).cpu()
        acted = time.perf_counter()
        ended = self.envs.step(action.numpy(), row)
        timer.add("policy", acted - began)
        timer.add("env", time.perf_counter() - acted)
        next_obs, terminated = torch.from_numpy(self._obs).clone(), torch.from_numpy(row.terminated).clone()
        for episode in ended:  # the row shows the next episode already
            if episode.final_obs is None:  # the env was lost: nothing is known of what the step led to
                terminated[episode.index] = True
                continue
            next_obs[episode.index] = torch.from_numpy(stack([episode.final_obs], self.envs.observation_space))[0]
            self._window.add(
                episode.ret,
                episode.length,
                success_of(episode),
                regret_of(episode),
                episode.infos.get(TERMS),
                task_of(episode),
            )
        self._check(next_obs, row.reward)
        reward = torch.from_numpy(row.reward)
        self.replay.add(obs=obs, action=action, reward=reward, next_obs=next_obs, terminated=terminated)
        own = row.reward if row.own_reward is None else row.own_reward
        return float(own.mean(dtype=np.float64))

    def _update_normaliser(self) -> None:
        """The observations of this iteration are the newest in the replay."""
        encoder = self._policy.encoder
        if encoder.norm is None and not self._policy.absorbs:
            return
        seen = self.replay.newest(self.steps_per_iteration).obs
        if encoder.norm is not None:
            encoder.norm.update(encoder.flat(seen).to(self.setup.device))
        if self._policy.absorbs:
            self._policy.absorb(some_of(seen, self.setup.device))

    def _check(self, next_obs: Tensor, reward: np.ndarray) -> None:
        """Bad data stops the run before it reaches the replay."""
        for what, numbers in (("observation", next_obs), ("reward", torch.from_numpy(reward))):
            if not math.isfinite(float(numbers.sum(dtype=torch.float64))):
                raise NonFiniteError(
                    f"The environment returned NaN or infinity ({what}) after {self.counters.vec_steps} vector steps. "
                    "The weights are unchanged."
                )

    def _learn(self, c: Coefficients) -> Mapping[str, Tensor]:
        batch = self.replay.sample(self.algo.batch_size, self.random)
        try:
            return self.learn(batch.to(self.setup.device), c)
        except NonFiniteError as error:
            error.batch = batch
            raise

    # ---- boundaries ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the policy's weights and the replay."""
        exact = self.envs.exact_resume != "none"
        return {
            "optimizer": self._optimizer.state(),
            "random": self.random.get_state(),
            "window": self._window.state(),
            "obs": self._obs.copy(),
            "envs": {"how": self.envs.exact_resume, "exact": exact, "state": self.envs.save_state() if exact else None},
        }

    def bulk(self) -> Mapping[str, Replay]:
        """The replay: a checkpoint writes what is new of it."""
        return {"replay": self.replay}

    def load_state(
        self, policy: dict[str, Tensor], state: dict[str, Any], counters: dict[str, Any], *, optimizer: bool = True
    ) -> None:
        """Go on exactly where `state` was taken, or with fresh episodes where envs cannot be saved."""
        load_policy(self._policy, policy)
        if optimizer:
            self._optimizer.load_state(state["optimizer"])
        self.random.set_state(state["random"])
        self._window.load(state["window"])
        self.counters = Counters.restored(counters)
        self._begins = not state["envs"]["exact"]
        if not self._begins:
            self.envs.load_state(state["envs"]["state"])
            self._obs[...] = state["obs"]

    def close(self) -> None:
        """Close the training envs."""
        self.envs.close()
